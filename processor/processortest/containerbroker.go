//go:build unix

package processortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// KafkaImage is the image of a real broker in a container.
const KafkaImage = "apache/kafka:" + kafkaVersion

// containerData is the folder that the image keeps for the broker's log; it
// stays when the container is stopped and started again.
const containerData = "/var/lib/kafka/data"

// dockerAnswers reports why no Docker engine can be used, nil if one can.
func dockerAnswers(ctx context.Context) (err error) {
	// testcontainers panics where it finds no socket at all.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("no Docker engine: %v", r)
		}
	}()
	docker, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	return errors.Join(docker.Health(ctx), docker.Close())
}

// containerBroker is a broker that runs in a container. testcontainers removes it after
// our death, by its reaper.
type containerBroker struct {
	docker    *testcontainers.DockerProvider
	container *testcontainers.DockerContainer
}

// newContainerBroker creates a broker's container, and does not start it.
func newContainerBroker(ctx context.Context, opts BrokerOptions) (*containerBroker, layout, error) {
	docker, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, layout{}, err
	}
	b := &containerBroker{docker: docker}
	l, err := b.create(ctx, opts)
	if err != nil {
		// A container may be there even so: its reaper may be what failed.
		return nil, l, errors.Join(err, testcontainers.TerminateContainer(b.container), docker.Close())
	}
	return b, l, nil
}

func (b *containerBroker) create(ctx context.Context, opts BrokerOptions) (layout, error) {
	l, err := newLayout("0.0.0.0", containerData, opts, map[int]bool{})
	if err != nil {
		return l, err
	}
	if l.host, err = publishedHost(ctx, b.docker); err != nil {
		return l, err
	}
	env := map[string]string{"CLUSTER_ID": newClusterID()}
	for name, value := range l.properties(opts) {
		env[environmentName(name)] = strings.ReplaceAll(value, "\n", `\n`)
	}
	if opts.JVM != nil {
		env["KAFKA_HEAP_OPTS"] = strings.Join(opts.JVM, " ")
	}
	b.container, err = testcontainers.Run(ctx, KafkaImage, testcontainers.WithNoStart(),
		testcontainers.WithEnv(env), testcontainers.WithExposedPorts(l.exposed()...),
		testcontainers.WithHostConfigModifier(l.publish))
	return l, err
}

// publishedHost returns the host at which the engine's published ports are
// reached. Where we run in a container ourselves, testcontainers takes the
// engine to be outside of it, at our gateway; but it may run beside us (as in
// a CI job that starts its own), and then the gateway knows nothing of it.
func publishedHost(ctx context.Context, docker *testcontainers.DockerProvider) (string, error) {
	host, err := docker.DaemonHost(ctx)
	if err != nil || !strings.HasPrefix(docker.Client().DaemonHost(), "unix:") {
		return host, err
	}
	bridge, err := docker.Client().NetworkInspect(ctx, "bridge", client.NetworkInspectOptions{})
	if err != nil {
		return host, nil //nolint:nilerr // an engine without that network: podman, say
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, config := range bridge.Network.IPAM.Config {
		// The engine's own end of the bridge is one of our interfaces.
		gateway := config.Subnet.Masked().Addr().Next()
		if slices.ContainsFunc(addrs, func(a net.Addr) bool { return strings.HasPrefix(a.String(), gateway.String()+"/") }) {
			return "localhost", nil
		}
	}
	return host, nil
}

// environmentName returns the variable that the image turns into a property.
func environmentName(property string) string {
	return "KAFKA_" + strings.ToUpper(strings.NewReplacer("_", "__", "-", "___", ".", "_").Replace(property))
}

func (l layout) exposed() []string {
	var ports []string
	for _, port := range l.ports {
		ports = append(ports, strconv.Itoa(port)+"/tcp")
	}
	return ports
}

// publish gives each port the same number outside as inside: the broker tells
// its clients where it is, and must find that true after a restart too. With an
// engine on this machine only this machine is let in.
func (l layout) publish(config *container.HostConfig) {
	var host netip.Addr
	if l.local() {
		host = netip.MustParseAddr("127.0.0.1")
	}
	config.PortBindings = network.PortMap{}
	for _, port := range l.exposed() {
		number, _, _ := strings.Cut(port, "/")
		config.PortBindings[network.MustParsePort(port)] = []network.PortBinding{{HostIP: host, HostPort: number}}
	}
}

func (b *containerBroker) start(ctx context.Context) error { return b.container.Start(ctx) }

func (b *containerBroker) alive(ctx context.Context) bool {
	state, err := b.container.State(ctx)
	return err != nil || state.Running
}

func (b *containerBroker) stop(ctx context.Context) error {
	grace := stopGrace
	return b.container.Stop(ctx, &grace)
}

func (b *containerBroker) kill() error {
	_, err := b.docker.Client().ContainerKill(context.Background(), b.container.GetContainerID(), client.ContainerKillOptions{})
	return err
}

func (b *containerBroker) pause() error {
	_, err := b.docker.Client().ContainerPause(context.Background(), b.container.GetContainerID(), client.ContainerPauseOptions{})
	return err
}

func (b *containerBroker) resume() error {
	_, err := b.docker.Client().ContainerUnpause(context.Background(), b.container.GetContainerID(), client.ContainerUnpauseOptions{})
	return err
}

func (b *containerBroker) remove(ctx context.Context) error {
	return errors.Join(b.container.Terminate(ctx), b.docker.Close())
}

func (b *containerBroker) logTail(ctx context.Context) string {
	logs, err := b.container.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	all, _ := io.ReadAll(logs)
	return string(all[max(0, len(all)-logTailBytes):])
}
