//go:build unix

package processortest

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
)

// Source says where a real broker comes from.
type Source string

// The sources of a real broker. FromAnywhere takes the first of the others that
// this machine has, in their order here.
const (
	FromAnywhere    Source = ""
	FromEnvironment Source = "environment"
	FromDocker      Source = "docker"
	FromJars        Source = "jars"
)

// BrokerOptions says what broker to start. The zero value is a broker without
// topics that listens without encryption or authentication, creates no topics
// by itself, replicates nothing and is quick about groups: no rebalance delay,
// session timeouts from one second on.
type BrokerOptions struct {
	// Source is where the broker comes from. Defaults to FromAnywhere.
	Source Source
	// Properties are server properties on top of those that make one node, or
	// in their place.
	Properties map[string]string
	// Listeners are further listeners beside the plain one.
	Listeners []Listener
	// JVM are options of the Java virtual machine. Defaults to a heap of 512 MB
	// and a quick start; a benchmark wants more heap and the full compiler.
	JVM []string
}

// Listener is a further listener of a broker, with an address of its own; see
// [RealBroker.ListenerAddr].
type Listener struct {
	// Name is the listener's name in server properties, in capitals.
	Name string
	// Protocol is its security protocol: PLAINTEXT, SASL_PLAINTEXT, SSL or
	// SASL_SSL. What else it needs (a login module, PEM keys) goes into Properties.
	Protocol string
	// Advertised are the addresses ("host:port") that clients are told, one for
	// each broker: those of a proxy, say. Defaults to where the listener is.
	Advertised []string
}

// plainListener is the listener that Addrs names.
const plainListener = "PLAINTEXT"

// layout is where the pieces of one broker are: it differs between a process
// and a container, and stays as it is over restarts.
type layout struct {
	host       string         // where clients reach it; empty: this machine
	bind       string         // address that listeners bind to
	data       string         // folder of the log
	controller int            // port of the controller, reached by the broker itself only
	ports      map[string]int // port by listener
	node       int            // its number, from 1 on
	voters     string         // the controllers; empty: this one alone
}

// newLayout chooses ports that are none of those taken, and adds them.
func newLayout(bind, data string, opts BrokerOptions, taken map[int]bool) (layout, error) {
	l := layout{bind: bind, data: data, ports: map[string]int{}, node: 1}
	var err error
	if l.controller, err = freePort(taken); err != nil {
		return l, err
	}
	taken[l.controller] = true
	for _, listener := range append([]Listener{{Name: plainListener}}, opts.Listeners...) {
		port, err := freePort(taken)
		if err != nil {
			return l, err
		}
		l.ports[listener.Name], taken[port] = port, true
	}
	return l, nil
}

// addr is where a listener is reached from this machine.
func (l layout) addr(listener string) string {
	host := l.host
	if l.local() {
		host = "127.0.0.1" // the name could lead to an address where nobody listens
	}
	return net.JoinHostPort(host, strconv.Itoa(l.ports[listener]))
}

func (l layout) local() bool { return l.host == "" || l.host == "localhost" }

// voter is how the controllers name this one.
func (l layout) voter() string { return fmt.Sprintf("%d@127.0.0.1:%d", l.node, l.controller) }

// properties are the server properties of one node that is broker and
// controller, small and quick, with those of opts on top.
func (l layout) properties(opts BrokerOptions) map[string]string {
	listeners := []string{fmt.Sprintf("CONTROLLER://127.0.0.1:%d", l.controller)}
	for name, port := range l.ports {
		listeners = append(listeners, fmt.Sprintf("%s://%s:%d", name, l.bind, port))
	}
	advertised := []string{plainListener + "://" + l.addr(plainListener)}
	for _, x := range opts.Listeners {
		addr := l.addr(x.Name)
		if len(x.Advertised) >= l.node {
			addr = x.Advertised[l.node-1]
		}
		advertised = append(advertised, x.Name+"://"+addr)
	}
	protocols := []string{"CONTROLLER:PLAINTEXT", plainListener + ":PLAINTEXT"}
	for _, x := range opts.Listeners {
		protocols = append(protocols, x.Name+":"+x.Protocol)
	}
	p := smallAndQuick()
	maps.Copy(p, map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        strconv.Itoa(l.node),
		"controller.quorum.voters":       cmp.Or(l.voters, l.voter()),
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     plainListener,
		"listeners":                      strings.Join(listeners, ","),
		"advertised.listeners":           strings.Join(advertised, ","),
		"listener.security.protocol.map": strings.Join(protocols, ","),
		"log.dirs":                       l.data,
	})
	maps.Copy(p, opts.Properties)
	return p
}
