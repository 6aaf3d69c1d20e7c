package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"

	"blindpost/shared/settings"
)

// maxSettingsFile is the largest settings file that is read.
const maxSettingsFile = 1 << 20

// readFile reads a settings file: YAML, a flat map from names to values. It takes a value as it is written, not as YAML
// reads it: 010 and 1:30 are no numbers.
func readFile(v settings.Values, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("failed to read the settings file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSettingsFile+1))
	if err != nil {
		return fmt.Errorf("failed to read the settings file: %w", err)
	}
	if len(data) > maxSettingsFile {
		return fmt.Errorf("%s: settings file is larger than %d bytes", name, maxSettingsFile)
	}
	return setFile(v, name, data)
}

func setFile(v settings.Values, name string, data []byte) error {
	root, err := onlyDocument(name, data)
	if root == nil {
		return err
	}
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: settings file must be lines \"name: value\"", name, root.Line)
	}
	var errs []error
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		place := fmt.Sprintf("%s:%d: ", name, key.Line)
		text, err := fileText(v, key.Value, value)
		switch {
		case seen[key.Value] > 0:
			err = fmt.Errorf("%s%s: it is set already, in line %d", place, key.Value, seen[key.Value])
		case key.Value == settings.Config.Name:
			err = fmt.Errorf("%s%s: a settings file cannot name another", place, key.Value)
		case err != nil:
			err = fmt.Errorf("%s%s: %w", place, key.Value, err)
		default:
			err = v.Set(place, settings.Line, key.Value, text)
		}
		seen[key.Value] = key.Line
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// onlyDocument is what stands in a file of one YAML document; nil if that is nothing but comments.
func onlyDocument(name string, data []byte) (*yaml.Node, error) {
	var first, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	err := d.Decode(&first)
	if err == nil {
		err = d.Decode(&second)
	}
	var at *yaml.LoadError
	switch {
	case err == nil:
		return nil, fmt.Errorf("%s:%d: a second document begins here: a settings file has one", name, second.Line)
	case errors.As(err, &at) && at.Mark.Line > 0:
		return nil, fmt.Errorf("%s:%d: settings file is no YAML: %s", name, at.Mark.Line, at.Message)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: settings file is no YAML: %w", name, err)
	case len(first.Content) == 0:
		return nil, nil
	}
	return first.Content[0], nil
}

// fileText is a value as it is written, or a list of values with commas between them.
func fileText(v settings.Values, name string, value *yaml.Node) (string, error) {
	s, err := v.Lookup(name)
	switch {
	case err != nil:
		return "", err
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		return "", errors.New("it has no value")
	case value.Kind == yaml.ScalarNode:
		return value.Value, nil
	case value.Kind != yaml.SequenceNode:
		return "", errors.New("it must be one value or a list of values")
	case !s.List:
		return "", errors.New("it takes one value, not a list")
	}
	var texts []string
	for _, one := range value.Content {
		if one.Kind != yaml.ScalarNode {
			return "", errors.New("it must be one value or a list of values")
		}
		texts = append(texts, one.Value)
	}
	return strings.Join(texts, ","), nil
}
