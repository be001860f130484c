// Command oracle judges placements by kube-scheduler's own filters.
//
// Each line of input is a question: the objects of a cluster, one of its pods, and optionally a node. Each line of output is
// the answer: for every node (or the one), "" where the default plugins let the pod on it, else what they say. The pod itself
// is taken out of the cluster first, so that one that is bound already is judged as if it were not.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

type question struct {
	Objects   []json.RawMessage `json:"objects"`
	Namespace string            `json:"namespace"`
	Pod       string            `json:"pod"`
	Node      string            `json:"node"` // empty: every node
}

type answer struct {
	Error string            `json:"error,omitempty"`
	Nodes map[string]string `json:"nodes"`
}

// world is what the plugins look at: pods and nodes by the snapshot, the rest by informers.
type world struct {
	pods  []*v1.Pod
	nodes []*v1.Node
	rest  []runtime.Object
	pod   *v1.Pod // the one asked about
}

func read(q *question) (*world, error) {
	w := &world{}
	for _, raw := range q.Objects {
		thing, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		if err != nil {
			return nil, err
		}
		switch thing := thing.(type) {
		case *v1.Pod:
			if thing.Namespace == q.Namespace && thing.Name == q.Pod {
				w.pod = thing
			} else if thing.Spec.NodeName != "" && thing.Status.Phase != v1.PodSucceeded && thing.Status.Phase != v1.PodFailed {
				w.pods = append(w.pods, thing)
			}
		case *v1.Node:
			w.nodes = append(w.nodes, thing)
		default:
			w.rest = append(w.rest, thing)
		}
	}
	if w.pod == nil {
		return nil, fmt.Errorf("there is no pod %s/%s among the objects", q.Namespace, q.Pod)
	}
	return w, nil
}

// profile is the default one without the plugins that act.
func profile() (*config.KubeSchedulerProfile, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	p := &defaults.Profiles[0]
	var kept []config.Plugin
	for _, plugin := range p.Plugins.MultiPoint.Enabled {
		if plugin.Name != names.DefaultPreemption && plugin.Name != names.DynamicResources {
			kept = append(kept, plugin)
		}
	}
	p.Plugins.MultiPoint.Enabled = kept
	return p, nil
}

func judge(ctx context.Context, q *question) (map[string]string, error) {
	w, err := read(q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pod := w.pod.DeepCopy()
	bound := pod.Spec.NodeName
	pod.Spec.NodeName = ""
	things := append([]runtime.Object{}, w.rest...)
	for _, node := range w.nodes {
		things = append(things, node)
	}
	client := fake.NewClientset(things...)
	factory := informers.NewSharedInformerFactory(client, 0)
	snapshot := cache.NewSnapshot(w.pods, w.nodes)
	p, err := profile()
	if err != nil {
		return nil, err
	}
	f, err := frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), p,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithPodGroupManager(cache.New(ctx, nil, false)),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())))
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if len(w.rest) > 0 {
		time.Sleep(5 * time.Millisecond) // handlers behind the informers are told a moment later
	}

	state := framework.NewCycleState()
	result, status, _ := f.RunPreFilterPlugins(ctx, state, pod)
	refusals := map[string]string{}
	for _, node := range w.nodes {
		name := node.Name
		if q.Node != "" && q.Node != name {
			continue
		}
		switch {
		case !status.IsSuccess():
			refusals[name] = status.Message()
		case !result.AllNodes() && !result.NodeNames.Has(name):
			refusals[name] = "a prefilter leaves the node out"
		default:
			info, err := snapshot.Get(name)
			if err != nil {
				return nil, err
			}
			refusals[name] = words(f.RunFilterPlugins(ctx, state, pod, info))
		}
	}
	if q.Node != "" && len(refusals) == 0 {
		return nil, fmt.Errorf("there is no node %q (the pod is on %q)", q.Node, bound)
	}
	return refusals, nil
}

func words(status *fwk.Status) string {
	if status.IsSuccess() {
		return ""
	}
	return status.Plugin() + ": " + status.Message()
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(os.Stderr)
	metrics.Register()
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<28)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var q question
		var a answer
		err := json.Unmarshal(in.Bytes(), &q)
		if err == nil {
			a.Nodes, err = judge(context.Background(), &q)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(&a); err != nil {
			fmt.Fprintln(os.Stderr, "oracle:", err)
			os.Exit(1)
		}
	}
}
