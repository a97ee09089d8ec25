// Answers, one JSON line for each, what the Go libraries of Kubernetes make of a text.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

type question struct {
	Op   string
	Data []byte
}

type answer struct {
	Texts []string `json:"texts"`
	Error string   `json:"error,omitempty"`
}

func split(data []byte) (texts []string, err error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		piece, err := reader.Read()
		if err == io.EOF {
			return texts, nil
		}
		if err != nil {
			return nil, err
		}
		if piece = bytes.TrimSpace(piece); len(piece) > 0 {
			texts = append(texts, string(piece))
		}
	}
}

func stream(data []byte) (texts []string, err error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err == io.EOF {
			return texts, nil
		} else if err != nil {
			return texts, err
		}
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		text, err := decode(raw)
		if err != nil {
			return texts, err
		}
		texts = append(texts, text)
	}
}

// decode gives the value as kubectl holds it, in the form it prints.
func decode(data []byte) (string, error) {
	var value interface{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &value); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(value, "", "    ")
	return string(text), err
}

func reply(q question) (result answer) {
	defer func() {
		if fault := recover(); fault != nil {
			result = answer{Error: fmt.Sprintf("crash: %v", fault)}
		}
	}()
	var texts []string
	var text []byte
	var err error
	switch q.Op {
	case "read":
		text, err = yaml.YAMLToJSON(q.Data)
		texts = []string{string(text)}
	case "write":
		text, err = yaml.JSONToYAML(q.Data)
		texts = []string{string(text)}
	case "json":
		var value string
		value, err = decode(q.Data)
		texts = []string{value}
	case "split":
		texts, err = split(q.Data)
	case "stream":
		texts, err = stream(q.Data)
	}
	if err != nil {
		return answer{Texts: texts, Error: err.Error()}
	}
	return answer{Texts: texts}
}

func main() {
	questions := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	answers := json.NewEncoder(out)
	for {
		var q question
		if err := questions.Decode(&q); err != nil {
			return
		}
		answers.Encode(reply(q))
	}
}
