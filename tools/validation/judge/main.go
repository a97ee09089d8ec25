// Command judge tells what Kubernetes itself refuses in static Pods, Deployments, DaemonSets, kubelet configurations and
// flags of components.
//
// Each line of standard input is {"pod": …}, {"workload": …}, {"kubelet": …} or {"component": …, "args": […]}; each line
// of standard output is a list of what is refused, empty if nothing is.
package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	serving "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/keyutil"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/compatibility"
	election "k8s.io/component-base/config"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // as every main package does: it adds a format
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	managerapp "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/helper"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
	kubelet "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubeletscheme "k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	kubeletvalidation "k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	latest "k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/util/parsers"
)

type question struct {
	Pod       json.RawMessage `json:"pod"`
	Workload  json.RawMessage `json:"workload"`
	Kubelet   json.RawMessage `json:"kubelet"`
	Component string          `json:"component"`
	Args      []string        `json:"args"`
}

// The gates as they are by default: components that parse their flags set those of the process.
var gates = utilfeature.DefaultMutableFeatureGate.DeepCopy()

// A key for the tokens of service accounts: the API server reads it before it validates its options.
var signingKey string

func main() {
	folder, err := os.MkdirTemp("", "judge")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	signingKey = filepath.Join(folder, "sa.key")
	if err := writeKey(signingKey); err != nil {
		panic(err)
	}
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true}) // as the kubelet does
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			panic(err)
		}
		refused := []string{}
		for _, err := range judge(asked) {
			refused = append(refused, err.Error())
		}
		_ = out.Encode(refused)
	}
}

func judge(asked question) (refused []error) {
	defer func() {
		if problem := recover(); problem != nil { // the kubelet's defaults do so for a feature gate that they do not know
			refused = []error{fmt.Errorf("panic: %v", problem)}
		}
	}()
	switch {
	case asked.Pod != nil:
		return judgePod(asked.Pod)
	case asked.Workload != nil:
		return judgeWorkload(asked.Workload)
	case asked.Kubelet != nil:
		return judgeKubelet(asked.Kubelet)
	default:
		return judgeFlags(asked.Component, asked.Args)
	}
}

// judgePod does what the kubelet does with the file of a static Pod (pkg/kubelet/config), which exports none of it.
func judgePod(document []byte) []error {
	object, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), document)
	if err != nil {
		return []error{err}
	}
	pod, isPod := object.(*api.Pod)
	if !isPod || pod.Name == "" {
		return []error{errors.New("no Pod, or no name")}
	}
	pod.UID = "0123456789abcdef0123456789abcdef"
	pod.Name += "-node"
	pod.Spec.NodeName = "node"
	if pod.Namespace == "" {
		pod.Namespace = "default"
	}
	helper.AddOrUpdateTolerationInPod(pod, &api.Toleration{Operator: "Exists", Effect: api.TaintEffectNoExecute})
	pod.Status.Phase = api.PodPending
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&pod.Spec, nil, &pod.ObjectMeta, nil)
	refused := []error{}
	for _, each := range corevalidation.ValidatePodCreate(pod, options) {
		refused = append(refused, each)
	}
	if _, reference, err := podutil.HasAPIObjectReference(pod); err != nil {
		refused = append(refused, err)
	} else if reference != "" {
		refused = append(refused, fmt.Errorf("static pods may not reference %s", reference))
	}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) { // as it does before it pulls
		if _, _, _, err := parsers.ParseImageName(container.Image); err != nil {
			refused = append(refused, err)
		}
	}
	return refused
}

// judgeWorkload validates a Deployment or DaemonSet as the API server does when it is created.
func judgeWorkload(document []byte) []error {
	object, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), document)
	if err != nil {
		return []error{err}
	}
	refused := []error{}
	switch workload := object.(type) {
	case *apps.Deployment:
		options := podutil.GetValidationOptionsFromPodTemplate(&workload.Spec.Template, nil)
		for _, each := range appsvalidation.ValidateDeployment(workload, options) {
			refused = append(refused, each)
		}
	case *apps.DaemonSet:
		options := podutil.GetValidationOptionsFromPodTemplate(&workload.Spec.Template, nil)
		for _, each := range appsvalidation.ValidateDaemonSet(workload, options) {
			refused = append(refused, each)
		}
	default:
		return []error{errors.New("neither a Deployment nor a DaemonSet")}
	}
	return refused
}

// judgeKubelet validates a configuration after its defaults, and reads what the kubelet reads when it starts.
func judgeKubelet(document []byte) []error {
	_, codecs, err := kubeletscheme.NewSchemeAndCodecs()
	if err != nil {
		panic(err)
	}
	object, err := runtime.Decode(codecs.UniversalDecoder(), document)
	if err != nil {
		return []error{err}
	}
	config := object.(*kubelet.KubeletConfiguration)
	config.FailCgroupV1 = false // the answer would depend on the machine
	refused := []error{}
	if err := kubeletvalidation.ValidateKubeletConfiguration(config, utilfeature.DefaultFeatureGate); err != nil {
		refused = append(refused, err)
	}
	if _, err := eviction.ParseThresholdConfig(
		config.EnforceNodeAllocatable, config.EvictionHard, config.EvictionSoft, config.EvictionSoftGracePeriod,
		config.EvictionMinimumReclaim,
	); err != nil {
		refused = append(refused, err)
	}
	size, err := resource.ParseQuantity(config.ContainerLogMaxSize)
	if _, isWhole := size.AsInt64(); err != nil || !isWhole {
		refused = append(refused, errors.New("containerLogMaxSize"))
	}
	refused = append(refused, reserved(config.SystemReserved)...)
	refused = append(refused, reserved(config.KubeReserved)...)
	return append(refused, judgeTLS(config.TLSMinVersion, config.TLSCipherSuites)...)
}

// reserved does what parseResourceList of the kubelet's command does, which is not exported.
func reserved(resources map[string]string) (refused []error) {
	for name, text := range resources {
		switch name {
		case "cpu", "memory", "ephemeral-storage", "pid":
			if quantity, err := resource.ParseQuantity(text); err != nil || quantity.Sign() == -1 {
				refused = append(refused, fmt.Errorf("bad quantity of %s", name))
			}
		default:
			refused = append(refused, fmt.Errorf("cannot reserve %q resource", name))
		}
	}
	return refused
}

func judgeTLS(version string, ciphers []string) (refused []error) {
	if _, err := cliflag.TLSVersion(version); err != nil {
		refused = append(refused, err)
	}
	if _, err := cliflag.TLSCipherSuites(ciphers); err != nil {
		refused = append(refused, err)
	}
	return refused
}

// judgeServing checks what is read when the component begins to serve.
func judgeServing(options *serving.SecureServingOptions, logging *logs.Options) []error {
	refused := judgeTLS(options.MinTLSVersion, options.CipherSuites)
	for _, each := range logsapi.Validate(logging, utilfeature.DefaultFeatureGate, nil) {
		refused = append(refused, each)
	}
	return refused
}

// judgeElection makes the elector, which is done when the component runs, as far as it can be without a lock.
func judgeElection(options *election.LeaderElectionConfiguration) []error {
	if !options.LeaderElect {
		return nil
	}
	_, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		LeaseDuration: options.LeaseDuration.Duration,
		RenewDeadline: options.RenewDeadline.Duration,
		RetryPeriod:   options.RetryPeriod.Duration,
		Callbacks:     leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	refused := []error{}
	if err != nil && !strings.HasPrefix(err.Error(), "Lock must") {
		refused = append(refused, err)
	}
	if _, err := resourcelock.New(options.ResourceLock, "a", "b", nil, nil, resourcelock.ResourceLockConfig{}); err != nil {
		refused = append(refused, err)
	}
	return refused
}

func writeKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	return keyutil.WriteKey(path, text)
}

// judgeFlags parses the flags of a component, and validates its options before and after they are completed.
func judgeFlags(component string, args []string) []error {
	sets, check := optionsOf(component)
	globalflag.AddGlobalFlags(sets.FlagSet("global"), component, logs.SkipLoggingConfigurationFlags())
	flags := pflag.NewFlagSet(component, pflag.ContinueOnError)
	flags.SetOutput(&strings.Builder{})
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return []error{err}
	}
	refused := check()
	for _, word := range flags.Args() { // as the commands of the components do
		if len(word) > 0 {
			refused = append(refused, fmt.Errorf("%q does not take any arguments, got %q", component, flags.Args()))
		}
	}
	pairs := []string{}
	for _, word := range args { // the value of the flag is that of the process, and grows
		if given, isGates := strings.CutPrefix(word, "--feature-gates="); isGates {
			for _, pair := range strings.Split(given, ",") {
				pairs = append(pairs, pair[strings.Index(pair, ":")+1:])
			}
		}
	}
	if err := gates.DeepCopy().Set(strings.Join(pairs, ",")); err != nil {
		refused = append(refused, err)
	}
	return refused
}

func optionsOf(name string) (cliflag.NamedFlagSets, func() []error) {
	switch name {
	case "kube-apiserver":
		options := apiserver.NewServerRunOptions()
		return options.Flags(), func() []error {
			refused := judgeServing(options.SecureServing.SecureServingOptions, options.Logs)
			options.GenericServerRunOptions.ComponentGlobalsRegistry = compatibility.NewComponentGlobalsRegistry()
			if options.ServiceAccountSigningKeyFile != "" {
				options.ServiceAccountSigningKeyFile = signingKey
			}
			if pair := &options.SecureServing.ServerCert.CertKey; pair.CertFile == "" && pair.KeyFile == "" {
				pair.CertFile = "/none" // else a certificate would be made, which takes long
			}
			completed, err := options.Complete(context.Background())
			if err != nil {
				return append(refused, err)
			}
			return append(refused, completed.Validate()...)
		}
	case "kube-controller-manager":
		options, err := manager.NewKubeControllerManagerOptions()
		if err != nil {
			panic(err)
		}
		known, off, aliases := managerapp.KnownControllers(), managerapp.ControllersDisabledByDefault(), managerapp.ControllerAliases()
		return options.Flags(known, off, aliases), func() []error {
			refused := judgeServing(options.SecureServing, options.Logs)
			refused = append(refused, judgeElection(&options.Generic.LeaderElection)...)
			options.ComponentGlobalsRegistry = compatibility.NewComponentGlobalsRegistry()
			if err := options.Validate(known, off, aliases); err != nil {
				refused = append(refused, err)
			}
			return refused
		}
	case "kube-scheduler":
		options := scheduler.NewOptions()
		return *options.Flags, func() []error {
			refused := judgeServing(options.SecureServing, options.Logs)
			options.ComponentGlobalsRegistry = compatibility.NewComponentGlobalsRegistry()
			config, err := latest.Default()
			if err != nil {
				panic(err)
			}
			options.ComponentConfig = config
			refused = append(refused, options.Validate()...)
			options.ApplyDeprecated()
			options.ApplyLeaderElectionTo(config)
			return append(refused, judgeElection(&config.LeaderElection)...)
		}
	}
	panic("no flags are known of " + name)
}
