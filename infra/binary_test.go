//go:build cdk

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"blindpost/shared/proof/port"
	"blindpost/shared/proof/rig"
)

func TestBinaryTask(t *testing.T) {
	tm := synth(t, "everything", everything).template
	task := tm.get(t, "BinaryTask", "AWS::ECS::TaskDefinition")
	task.want(t, map[string]string{
		"Cpu": "512", "Memory": "1024", "NetworkMode": "awsvpc", "RequiresCompatibilities": `["FARGATE"]`,
		"RuntimePlatform.CpuArchitecture": "ARM64", "RuntimePlatform.OperatingSystemFamily": "LINUX",
		"TaskRoleArn": "${BinaryRole.Arn}", "ExecutionRoleArn": "${BinaryStartRole.Arn}",
		"ContainerDefinitions.1":                                         "",
		"ContainerDefinitions.0.ReadonlyRootFilesystem":                  "true",
		"ContainerDefinitions.0.Privileged":                              "",
		"ContainerDefinitions.0.User":                                    "", // the image says 65532
		"ContainerDefinitions.0.Secrets":                                 "",
		"ContainerDefinitions.0.PortMappings.0.ContainerPort":            "8080",
		"ContainerDefinitions.0.PortMappings.1.ContainerPort":            "8081",
		"ContainerDefinitions.0.LogConfiguration.Options.awslogs-group":  "${BinaryLog}",
		"ContainerDefinitions.0.LogConfiguration.Options.awslogs-region": "${AWS::Region}",
		"ContainerDefinitions.0.StopTimeout":                             "60",
	})
	tm.get(t, "BinaryLog", "AWS::Logs::LogGroup").want(t, map[string]string{"RetentionInDays": "30"})
	synth(t, "binary", fronts["binary"]).template.get(t, "BinaryTask", "AWS::ECS::TaskDefinition").want(t, map[string]string{"Cpu": "256", "Memory": "512"})
}

func TestBinaryEnvironment(t *testing.T) {
	tm := synth(t, "everything", everything).template
	same(t, "variables", binaryVariables(t, tm), []string{
		"BLINDPOST_LISTEN=:8080", "BLINDPOST_BEHIND_PROXY=10.91.0.0/24", "BLINDPOST_METRICS_LISTEN=off", "BLINDPOST_LOG_LEVEL=debug",
		"BLINDPOST_LAMBDA=https://lambda.${AWS::Region}.${AWS::URLSuffix}",
		"BLINDPOST_LAMBDA_CONNECT=${Connect}", "BLINDPOST_LAMBDA_MESSAGE=${Message}", "BLINDPOST_LAMBDA_DISCONNECT=${Disconnect}",
		"BLINDPOST_CALLBACK_LISTEN=:8081", "BLINDPOST_CALLBACK_URL=https://frames.example.org:8443", "BLINDPOST_CALLBACK_SECRET_ARN=${FrontSecret}",
		"BLINDPOST_MAX_FRAME=32KiB", "BLINDPOST_MAX_LIVE_FRAME=96KiB",
	})
	// The functions call it there.
	connect := variables(t, tm, "connect")
	if fronts := "FRONTS=https://frames.example.org:8443,"; !slices.ContainsFunc(connect, func(v string) bool { return strings.HasPrefix(v, fronts) }) {
		t.Errorf("the functions are told %v", connect)
	}
}

func binaryVariables(t *testing.T, tm *template) []string {
	t.Helper()
	var lines []string
	for _, v := range list(tm.get(t, "BinaryTask", "AWS::ECS::TaskDefinition").value("ContainerDefinitions.0.Environment")) {
		r := resource{Properties: v.(map[string]any)}
		lines = append(lines, r.at("Name")+"="+r.at("Value"))
	}
	return lines
}

// The binary starts with the settings of the template, on a file system that it
// leaves alone, and is then what the load balancer looks for.
func TestBinaryStarts(t *testing.T) {
	binary := rig.Build(t)
	secrets := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_, _ = io.WriteString(w, `{"Name":"front","SecretString":"48-characters-that-no-person-has-to-know-anywhere"}`)
	}))
	defer secrets.Close()
	resolved := strings.NewReplacer("${AWS::Region}", "eu-central-1", "${AWS::URLSuffix}", "amazonaws.com", "${FrontSecret}", samples.frontSecret,
		"${Connect}", "Blindpost-Connect-EXAMPLE", "${Message}", "Blindpost-Message-EXAMPLE", "${Disconnect}", "Blindpost-Disconnect-EXAMPLE")
	for _, name := range []string{"everything", "binary"} {
		dir, clients := t.TempDir(), port.Reserve(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, "serve")
		cmd.Dir = dir
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		cmd.Env = []string{
			"HOME=" + dir, "AWS_ACCESS_KEY_ID=example", "AWS_SECRET_ACCESS_KEY=example", "AWS_REGION=eu-central-1",
			"AWS_ENDPOINT_URL_SECRETS_MANAGER=" + secrets.URL,
		}
		for _, v := range binaryVariables(t, synth(t, name, fronts[name]).template) {
			switch v = resolved.Replace(v); { // ports of a container; here they may be taken
			case strings.HasPrefix(v, "BLINDPOST_LISTEN="):
				v = "BLINDPOST_LISTEN=" + clients
			case strings.HasPrefix(v, "BLINDPOST_CALLBACK_LISTEN="):
				v = "BLINDPOST_CALLBACK_LISTEN=" + port.Reserve(t)
			}
			cmd.Env = append(cmd.Env, v)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		if err := ready(ctx, "http://"+clients+"/readyz", ended); err != nil {
			t.Errorf("%s: %v: %s", name, err, said.String())
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
			t.Errorf("%s: it left %v, %v", name, files, err)
		}
		cancel()
		<-ended
	}
}

// ready waits until an address answers as it should.
func ready(ctx context.Context, url string, ended <-chan struct{}) error {
	for {
		if res, err := http.Get(url); err == nil {
			res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return errors.New(res.Status)
			}
			return nil
		}
		select {
		case <-ended:
			return errors.New("it ended")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Never two at a time: the functions reach the task by one address.
func TestBinaryService(t *testing.T) {
	tm := synth(t, "everything", everything).template
	service := tm.get(t, "BinaryService", "AWS::ECS::Service")
	service.want(t, map[string]string{
		"DesiredCount": "1", "LaunchType": "FARGATE", "AvailabilityZoneRebalancing": "DISABLED",
		"DeploymentConfiguration.MinimumHealthyPercent":             "0",
		"DeploymentConfiguration.MaximumPercent":                    "100",
		"NetworkConfiguration.AwsvpcConfiguration.AssignPublicIp":   "ENABLED",
		"NetworkConfiguration.AwsvpcConfiguration.SecurityGroups.0": "${BinaryTaskGroup.GroupId}",
		"NetworkConfiguration.AwsvpcConfiguration.SecurityGroups.1": "",
		"LoadBalancers.0.ContainerPort":                             "8080",
		"LoadBalancers.1.ContainerPort":                             "8081",
		"DeploymentConfiguration.DeploymentCircuitBreaker.Enable":   "true",
		"DeploymentConfiguration.DeploymentCircuitBreaker.Rollback": "true",
	})
	if d := flat(list(service.DependsOn)); !strings.Contains(d, "BinaryClientListener") || !strings.Contains(d, "BinaryCallbackListener") {
		t.Errorf("the service can be there before its listeners: it depends on %s", d)
	}
	if n := len(tm.ofType("AWS::ApplicationAutoScaling::ScalableTarget")); n != 0 {
		t.Error("a second task would not be reached")
	}
}

func TestBinaryBalancer(t *testing.T) {
	tm := synth(t, "everything", everything).template
	tm.get(t, "BinaryBalancer", "AWS::ElasticLoadBalancingV2::LoadBalancer").want(t, map[string]string{
		"Scheme": "internet-facing", "Type": "application", "SecurityGroups": `[{"Fn::GetAtt":["` + longID(t, tm, "BinaryBalancerGroup") + `","GroupId"]}]`,
	})
	attributes := tm.get(t, "BinaryBalancer", "AWS::ElasticLoadBalancingV2::LoadBalancer").at("LoadBalancerAttributes")
	for _, a := range []string{`{"Key":"idle_timeout.timeout_seconds","Value":"50"}`, `{"Key":"routing.http.drop_invalid_header_fields.enabled","Value":"true"}`} {
		if !strings.Contains(attributes, a) {
			t.Errorf("%s is missing in %s", a, attributes)
		}
	}
	for id, want := range map[string][2]string{"BinaryClient": {"443", "8080"}, "BinaryCallback": {"8443", "8081"}} {
		tm.get(t, id+"Listener", "AWS::ElasticLoadBalancingV2::Listener").want(t, map[string]string{
			"Port": want[0], "Protocol": "HTTPS", "DefaultActions.0.TargetGroupArn": "${" + id + "Targets}", "DefaultActions.0.Type": "forward",
			"Certificates.0.CertificateArn": "arn:aws:acm:eu-central-1:123456789012:certificate/4e5f-6a7b",
			"SslPolicy":                     "ELBSecurityPolicy-TLS13-1-2-Res-2021-06",
		})
		tm.get(t, id+"Targets", "AWS::ElasticLoadBalancingV2::TargetGroup").want(t, map[string]string{
			"Port": want[1], "Protocol": "HTTP", "TargetType": "ip", "HealthCheckPath": "/readyz", "HealthCheckPort": "8080",
		})
	}
	tm.get(t, "BinaryRecord", "AWS::Route53::RecordSet").want(t, map[string]string{"Name": "frames.example.org.", "Type": "A"})
	synth(t, "binary", fronts["binary"]).template.get(t, "BinaryCertificate", "AWS::CertificateManager::Certificate").want(t, map[string]string{
		"DomainName": "frames.example.org", "ValidationMethod": "DNS",
	})
}

// The security groups let only the load balancer reach the task.
func TestBinaryNetwork(t *testing.T) {
	tm := synth(t, "everything", everything).template
	var rules []string
	for _, id := range []string{"BinaryBalancerGroup", "BinaryTaskGroup"} {
		group := tm.get(t, id, "AWS::EC2::SecurityGroup")
		if group.value("SecurityGroupEgress") == nil {
			t.Errorf("%s lets everything out: that is what EC2 makes of no rule", id)
		}
		for direction, word := range map[string]string{"SecurityGroupIngress": " from ", "SecurityGroupEgress": " to "} {
			for _, v := range list(group.value(direction)) {
				if v == nil {
					continue
				}
				r := resource{Properties: v.(map[string]any)}
				rules = append(rules, id+word+r.at("CidrIp")+" "+r.at("IpProtocol")+" "+r.at("FromPort")+"-"+r.at("ToPort"))
			}
		}
	}
	for kind, word := range map[string]string{"AWS::EC2::SecurityGroupIngress": " from ", "AWS::EC2::SecurityGroupEgress": " to "} {
		for _, r := range tm.ofType(kind) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.at("GroupId"), "${"), ".GroupId}")
			other := r.at("SourceSecurityGroupId") + r.at("DestinationSecurityGroupId")
			rules = append(rules, id+word+strings.TrimSuffix(strings.TrimPrefix(other, "${"), ".GroupId}")+" "+r.at("IpProtocol")+" "+r.at("FromPort")+"-"+r.at("ToPort"))
		}
	}
	same(t, "rules", rules, []string{
		"BinaryBalancerGroup from 0.0.0.0/0 tcp 443-443", "BinaryBalancerGroup from 0.0.0.0/0 tcp 8443-8443",
		"BinaryBalancerGroup to 10.91.0.0/24 tcp 8080-8080", "BinaryBalancerGroup to 10.91.0.0/24 tcp 8081-8081",
		"BinaryBalancerGroup to BinaryTaskGroup tcp 8080-8080", "BinaryBalancerGroup to BinaryTaskGroup tcp 8081-8081",
		"BinaryTaskGroup from BinaryBalancerGroup tcp 8080-8080", "BinaryTaskGroup from BinaryBalancerGroup tcp 8081-8081",
		"BinaryTaskGroup to 0.0.0.0/0 tcp 443-443",
	})
	subnets := tm.ofType("AWS::EC2::Subnet")
	if len(subnets) != 2 {
		t.Errorf("there are %d subnets, and a load balancer wants 2", len(subnets))
	}
	tm.get(t, "BinaryNetwork", "AWS::EC2::VPC").want(t, map[string]string{"CidrBlock": binaryNetwork})
}

// Without the key there is nothing of it.
func TestNoBinaryFront(t *testing.T) {
	for id, r := range synth(t, "plain", nil).template.resources {
		for _, service := range []string{"AWS::ECS::", "AWS::EC2::", "AWS::ElasticLoadBalancingV2::"} {
			if strings.HasPrefix(r.Type, service) {
				t.Errorf("there is a %s %s", r.Type, id)
			}
		}
	}
}
