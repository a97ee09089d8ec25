// Command roundtrip decodes documents into their Go types and encodes them again, the way kubeadm treats a static Pod.
//
// Each line of standard input is a JSON document; each line of standard output is {"output": …} or {"error": "…"}.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiserver "k8s.io/apiserver/pkg/apis/apiserver/v1"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	kubeproxy "k8s.io/kube-proxy/config/v1alpha1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

type answer struct {
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func main() {
	components := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiserver.AddToScheme, kubelet.AddToScheme, kubeproxy.AddToScheme} {
		if err := add(components); err != nil {
			panic(err)
		}
	}
	decoders := []runtime.Decoder{
		clientgo.Codecs.UniversalDeserializer(),
		serializer.NewCodecFactory(components).UniversalDeserializer(),
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		output, err := roundTrip(line, decoders)
		if err != nil {
			_ = out.Encode(answer{Error: err.Error()})
		} else {
			_ = out.Encode(answer{Output: output})
		}
	}
}

func roundTrip(line []byte, decoders []runtime.Decoder) ([]byte, error) {
	text, err := yaml.JSONToYAML(line) // what kubeadm decodes is YAML, which respells numbers
	if err != nil {
		return nil, err
	}
	var object runtime.Object
	for _, decoder := range decoders {
		if object, _, err = decoder.Decode(text, nil, nil); !runtime.IsNotRegisteredError(err) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if text, err = yaml.Marshal(object); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(text)
}
