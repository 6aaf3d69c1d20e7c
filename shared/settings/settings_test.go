package settings_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/dialect/skald"
	"blindpost/shared/push"
	"blindpost/shared/settings"
	"blindpost/shared/table"
)

// Each declaration is complete, and its default and bounds are valid.
func TestDeclarations(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range settings.All(settings.AllReaders) {
		if seen[s.Name] {
			t.Errorf("%s is declared twice", s.Name)
		}
		seen[s.Name] = true
		if s.Help == "" || s.Want == "" || s.Unit == "" && !s.Switch || s.Group == nil || s.Readers == 0 {
			t.Errorf("%s is not fully declared", s.Name)
		}
		if s.Readers&settings.Binary == 0 && s.Reload {
			t.Errorf("%s changes with a reload of the binary, which does not read it", s.Name)
		}
		for _, text := range []string{s.Default, s.Min, s.Max} {
			if text == "" {
				continue
			}
			if _, err := s.Value(text); err != nil {
				t.Errorf("%s: %q: %v", s.Name, text, err)
			}
		}
	}
}

// A reader that is not declared for a setting cannot read it.
func TestOnlyReadersRead(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a setting was read by another reader")
		}
	}()
	settings.Table.Of(settings.For(settings.Binary, settings.Line))
}

// Defaults and bounds that are written as text are those of the code.
func TestDeclarationsFitTheCode(t *testing.T) {
	d := settings.Defaults()
	if settings.DefaultPath.Of(d) != skald.Path || settings.AelosController.Of(d) != aelos.DefaultController.String() {
		t.Error("defaults have moved")
	}
	if v, err := settings.MaxFrame.Value("392KiB"); err != nil || v != int64(table.MaxItemSize-8<<10) || settings.MaxFrame.Max != "392KiB" {
		t.Error("largest stored frame has moved")
	}
	if _, err := settings.PushTitle.Value(strings.Repeat("x", push.MaxText)); err != nil {
		t.Error(err)
	}
	if _, err := settings.PushTitle.Value(strings.Repeat("x", push.MaxText+1)); err == nil {
		t.Error("a text that no push holds is taken")
	}
}

// A setting is used where it is declared to be read: by the binary, by the functions or what both are made of, by the
// stack. A reader that is not declared panics, see Key.Of.
func TestEverySettingIsBound(t *testing.T) {
	goNames := declared(t)
	used := map[string]map[string]bool{}
	for _, part := range []string{"cmd/blindpost", "functions", "infra", "shared"} {
		used[part] = uses(t, filepath.Join("../..", part))
	}
	for _, s := range settings.All(settings.AllReaders) {
		goName := goNames[s.Name]
		for _, r := range []struct {
			reader settings.Readers
			parts  []string
		}{
			{settings.Binary, []string{"cmd/blindpost", "shared"}},
			{settings.Functions, []string{"functions", "shared"}},
			{settings.Stack, []string{"infra"}},
		} {
			bound := false
			for _, part := range r.parts {
				bound = bound || used[part][goName]
			}
			// The stack passes on what a function reads without knowing it.
			passed := r.reader == settings.Stack && s.Readers&settings.Functions != 0
			if own := used[r.parts[0]][goName]; own && s.Readers&r.reader == 0 && r.reader != settings.Stack { // which tells others
				t.Errorf("%s (%s) is used in %s, for which it is not declared", s.Name, goName, r.parts[0])
			}
			if s.Readers&r.reader != 0 && !bound && !passed {
				t.Errorf("%s (%s) is declared for %v, which do not use it", s.Name, goName, r.parts)
			}
		}
	}
}

// declared maps the name of each setting to its Go name.
func declared(t *testing.T) map[string]string {
	goNames := map[string]string{}
	for _, file := range []string{"declared.go", "declared_aws.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			ast.Inspect(spec.Values[0], func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				f, ok := call.Fun.(*ast.Ident)
				if ok && f.Name == "declare" {
					name, _ := strconv.Unquote(call.Args[2].(*ast.BasicLit).Value)
					goNames[name] = spec.Names[0].Name
				} else if ok && f.Name == "reserved" {
					name, _ := strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
					goNames["reserved-"+name] = spec.Names[0].Name
				}
				return true
			})
			return false
		})
	}
	return goNames
}

// uses are the names of this package that the code below a folder uses, tests apart.
func uses(t *testing.T, dir string) map[string]bool {
	used := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		here := "settings"
		for _, i := range f.Imports {
			if i.Path.Value == `"blindpost/shared/settings"` && i.Name != nil {
				here = i.Name.Name
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == here {
					used[sel.Sel.Name] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return used
}
