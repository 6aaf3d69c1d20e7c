//go:build aws

package localaws_test

import (
	"archive/zip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"blindpost/shared/gateway/remote/invoke"
	"blindpost/shared/proof/localaws"
	"blindpost/shared/proof/port"
)

const (
	// maxZip is the largest package of a function, in bytes: what Lambda has to fetch at
	// a cold start.
	maxZip = 15 << 20
	// maxInit is how long a process may take until it asks for work. It takes a hundredth of
	// that; Lambda gives ten seconds.
	maxInit = 5 * time.Second
)

// What a cold start costs: how large the packages are, and how long a process takes until
// it asks for work, and then for its first event.
func TestColdStart(t *testing.T) {
	dir := t.TempDir()
	if err := localaws.Build(tree, dir, "GOOS=linux", "GOARCH=arm64"); err != nil { // as deployed
		t.Fatal(err)
	}
	for _, folder := range localaws.Names {
		if size := zipped(t, filepath.Join(dir, folder, "bootstrap")); size > maxZip {
			t.Errorf("%s: %d bytes zipped, want at most %d", folder, size, maxZip)
		} else {
			t.Logf("%s: %.1f MB zipped", folder, float64(size)/(1<<20))
		}
	}
	f := open(t, plan{house: localaws.Options{Env: roomy}})
	const starts = 5
	var first []time.Duration
	for range starts {
		// Killed as soon as it has its event: the next call needs a new process.
		f.Lambda.Fail(func(string, []byte) localaws.Fault { return localaws.Fault{Kill: 0} })
		for name := range localaws.Names {
			if _, err := f.Lambda.Invoke(t.Context(), name, []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		f.Lambda.Fail(nil)
		begin := time.Now()
		if err := f.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		first = append(first, time.Since(begin))
	}
	for name := range localaws.Names {
		inits := f.Lambda.Inits(name)
		slices.Sort(inits)
		if len(inits) < starts || inits[len(inits)/2] > maxInit {
			t.Errorf("%s: starts took %v", name, inits)
			continue
		}
		t.Logf("%s: asks for work after %v (median of %d)", name, inits[len(inits)/2].Round(time.Millisecond), len(inits))
	}
	slices.Sort(first)
	t.Logf("Sweeper: start and first event %v", first[len(first)/2].Round(time.Millisecond))
}

// zipped is the size of a package with one file.
func zipped(t *testing.T, name string) (size int) {
	t.Helper()
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out := counter{&size}
	z := zip.NewWriter(out)
	w, err := z.Create("bootstrap")
	if err == nil {
		_, err = io.Copy(w, in)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return size
}

type counter struct{ n *int }

func (c counter) Write(p []byte) (int, error) { *c.n += len(p); return len(p), nil }

// The binaries run under the emulator that SAM uses, and our client of Lambda talks to
// it.
func TestRuntimeInterfaceEmulator(t *testing.T) {
	emulator, err := filepath.Abs(filepath.Join(root, ".tools/aws-lambda-rie"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(emulator); err != nil {
		t.Fatalf("%v: make test-aws installs it", err)
	}
	f := open(t, plan{house: localaws.Options{Env: roomy}})
	call := emulate(t, emulator, f, "connect")
	event := sample(t, "connect/testdata/connect.json")
	out := call(event)
	var res events.APIGatewayProxyResponse
	if err := json.Unmarshal(out.Payload, &res); err != nil || out.FunctionError != nil || res.StatusCode != 200 {
		t.Errorf("%v: %s", err, out.Payload)
	}
	if out := call([]byte(`{"requestContext":7}`)); out.FunctionError == nil && !strings.Contains(string(out.Payload), "errorMessage") {
		t.Errorf("an event that is none: %s", out.Payload)
	}
}

// emulate starts an emulator with one function.
func emulate(t *testing.T, emulator string, f *front, folder string) func(payload []byte) *lambda.InvokeOutput {
	t.Helper()
	address, runtime := port.Reserve(t), port.Reserve(t)
	cmd := exec.Command(emulator, "--runtime-interface-emulator-address", address, "--runtime-api-address", runtime,
		filepath.Join(binaries, folder, "bootstrap"))
	cmd.Env = append(slices.Clone(f.Environment), "AWS_REGION="+localaws.Region, "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local",
		"AWS_LAMBDA_FUNCTION_TIMEOUT=15", "HOME="+t.TempDir(), "PATH="+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = f.log, f.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it takes its child along
		gone := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		gone.Stop()
	})
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		res, err := http.Get("http://" + address)
		if err == nil {
			_ = res.Body.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the emulator does not listen: %v", err)
		}
	}
	client, err := invoke.Clients{}.Lambda(context.Background(), "http://"+address)
	if err != nil {
		t.Fatal(err)
	}
	name := "function" // the emulator knows no other
	return func(payload []byte) *lambda.InvokeOutput {
		t.Helper()
		out, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name, Payload: payload})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}
