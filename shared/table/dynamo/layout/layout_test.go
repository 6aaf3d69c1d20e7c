package layout

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNamesAreToldApart(t *testing.T) {
	for attr, want := range map[string]string{
		"a": "a", "status": "status", "PK": "PK", "pkk": "pkk", "ttl2": "ttl2",
		"pk": "=pk", "sk": "=sk", "ttl": "=ttl",
		"=": "==", "=pk": "==pk", "==": "===", "a=": "a=",
	} {
		if got := Name(attr); got != want {
			t.Errorf("%q is stored as %q, want %q", attr, got, want)
		}
	}
	for _, ours := range []string{Partition, Sort, Expires, Marker} {
		if attr, ok := Attr(ours); ok {
			t.Errorf("%q is taken for the attribute %q", ours, attr)
		}
	}
	names := rapid.OneOf(rapid.String(), rapid.StringMatching(`=*(pk|sk|ttl)?=?`)).Filter(func(s string) bool { return s != "" })
	rapid.Check(t, func(t *rapid.T) {
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		if got, ok := Attr(Name(a)); !ok || got != a {
			t.Fatalf("%q comes back as %q, %v", a, got, ok)
		}
		if a != b && Name(a) == Name(b) {
			t.Fatalf("%q and %q are both stored as %q", a, b, Name(a))
		}
	})
}
