// Every metric of the stock server and agent, each touched once: a line with its name, type, labels and buckets.
package main

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	commonmetrics "sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/common/metrics"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
	agent "sigs.k8s.io/apiserver-network-proxy/pkg/agent/metrics"
	server "sigs.k8s.io/apiserver-network-proxy/pkg/server/metrics"
	"sigs.k8s.io/apiserver-network-proxy/pkg/server/proxystrategies"
)

func touchServer() {
	m := server.Metrics
	m.ObserveDialLatency(time.Second)
	m.ObserveFrontendWriteLatency(time.Second)
	m.ConnectionInc(server.Proxy)
	m.HTTPConnectionInc()
	m.SetBackendCountDeprecated(1)
	m.SetTotalBackendCount(proxystrategies.ProxyStrategyDefault, 1)
	m.SetPendingDialCount(1)
	m.SetEstablishedConnCount(1)
	m.FullRecvChannel(server.Proxy).Inc()
	m.ObserveDialFailure(server.DialFailureNoAgent)
	m.ObservePacket(commonmetrics.SegmentToAgent, client.PacketType_DATA)
	m.ObserveStreamErrorNoPacket(commonmetrics.SegmentToAgent, errors.New("x"))
	m.CulledLeasesInc()
	m.ObserveLeaseDeleteLatency(200, time.Second)
	m.ObserveLeaseDelete(200, "")
	m.ObserveLeaseListLatency(200, time.Second)
	m.ObserveLeaseList(200, "")
}

func touchAgent() {
	m := agent.Metrics
	m.ObserveServerFailureDeprecated(agent.DirectionToServer)
	m.ObserveDialLatency(time.Second)
	m.ObserveDialFailure(agent.DialFailureTimeout)
	m.SetServerConnectionsCount(1)
	m.SetServerCount(1)
	m.ObserveLeaseList(200, "")
	m.ObserveLeaseListLatency(time.Second, 200)
	m.EndpointConnectionInc()
	m.ObservePacket(commonmetrics.SegmentToAgent, client.PacketType_DATA)
	m.ObserveStreamErrorNoPacket(commonmetrics.SegmentToAgent, errors.New("x"))
}

func main() {
	touchServer()
	touchAgent()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "konnectivity_") {
			continue
		}
		metric := family.GetMetric()[0]
		labels, buckets := []string{}, []string{}
		for _, label := range metric.GetLabel() {
			labels = append(labels, label.GetName())
		}
		sort.Strings(labels)
		for _, bucket := range metric.GetHistogram().GetBucket() {
			buckets = append(buckets, fmt.Sprint(bucket.GetUpperBound()))
		}
		fmt.Printf("%s %s %s %s\n", family.GetName(), strings.ToLower(family.GetType().String()),
			strings.Join(labels, ","), strings.Join(buckets, ","))
	}
}
