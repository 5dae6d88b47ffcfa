package torture

import (
	"errors"
	"io"
	"net"
	"sync"
)

// kafkaLink is a worker's way to the brokers: one forwarded port for each of them.
// The brokers tell the worker of these addresses only.
type kafkaLink struct{ forwards []*forward }

func newKafkaLink(brokers int) (*kafkaLink, error) {
	l := &kafkaLink{}
	for range brokers {
		f, err := newForward()
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		l.forwards = append(l.forwards, f)
	}
	return l, nil
}

// lead tells where each broker is; a link that leads nowhere is not used.
func (l *kafkaLink) lead(to func(broker int) string) {
	for n, f := range l.forwards {
		f.mu.Lock()
		f.target = to(n)
		f.mu.Unlock()
	}
}

func (l *kafkaLink) leads() bool {
	f := l.forwards[0]
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.target != ""
}

func (l *kafkaLink) addrs() (addrs []string) {
	for _, f := range l.forwards {
		addrs = append(addrs, f.listener.Addr().String())
	}
	return addrs
}

// set takes the link down, with all that goes by it, or up again.
func (l *kafkaLink) set(down bool) {
	for _, f := range l.forwards {
		f.set(down)
	}
}

func (l *kafkaLink) close() error {
	var errs []error
	for _, f := range l.forwards {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// forward passes the bytes of each connection on to its target.
type forward struct {
	listener net.Listener
	all      sync.WaitGroup

	mu     sync.Mutex // guards what follows
	target string
	down   bool
	open   map[net.Conn]bool
}

func newForward() (*forward, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &forward{listener: listener, open: map[net.Conn]bool{}}
	f.all.Go(f.accept) // ends with the listener; close waits for it
	return f, nil
}

func (f *forward) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.all.Go(func() { f.pass(conn) }) // ends with either end, which close closes
	}
}

// pass connects, and copies both ways until one of them has ended.
func (f *forward) pass(conn net.Conn) {
	defer conn.Close()
	if !f.add(conn) {
		return
	}
	defer f.remove(conn)
	f.mu.Lock()
	target := f.target
	f.mu.Unlock()
	other, err := net.Dial("tcp", target)
	if err != nil {
		return // the client finds its connection closed, as by the broker
	}
	defer other.Close()
	var both sync.WaitGroup
	for _, way := range [2][2]net.Conn{{conn, other}, {other, conn}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // whichever end it was: both go
			conn.Close()
			other.Close()
		})
	}
	both.Wait()
}

// add notes a connection, unless the link is down.
func (f *forward) add(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.down {
		f.open[conn] = true
	}
	return !f.down
}

func (f *forward) remove(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, conn)
}

func (f *forward) set(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
	if !down {
		return
	}
	for conn := range f.open {
		conn.Close()
	}
}

func (f *forward) close() error {
	f.set(true)
	err := f.listener.Close()
	f.all.Wait()
	return err
}
