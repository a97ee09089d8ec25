// Asks Go's filepath.Glob about patterns below a folder that is made of the given paths.
package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

type question struct {
	Paths    []string `json:"paths"`
	Patterns []string `json:"patterns"`
}

type answer struct {
	Bad     bool     `json:"bad"`
	Matches []string `json:"matches"`
}

func main() {
	var asked question
	must(json.NewDecoder(os.Stdin).Decode(&asked))
	root, err := os.MkdirTemp("", "glob")
	must(err)
	defer os.RemoveAll(root)
	for _, path := range asked.Paths {
		file := filepath.Join(root, path)
		must(os.MkdirAll(filepath.Dir(file), 0o755))
		must(os.WriteFile(file, nil, 0o644))
	}
	answers := []answer{}
	for _, pattern := range asked.Patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		one := answer{Bad: err != nil, Matches: []string{}}
		for _, each := range found {
			one.Matches = append(one.Matches, strings.TrimPrefix(strings.TrimPrefix(each, root), "/"))
		}
		answers = append(answers, one)
	}
	must(json.NewEncoder(os.Stdout).Encode(answers))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
