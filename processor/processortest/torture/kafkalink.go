package torture

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// kafkaLink is a worker's way to the brokers: one forwarded port for each of them.
// The brokers tell the worker of these addresses only.
type kafkaLink struct{ forwards []*forward }

func newKafkaLink(brokers int) (*kafkaLink, error) {
	l := &kafkaLink{}
	for range brokers {
		f, err := newForward()
		if err != nil {
			l.close()
			return nil, err
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
		addrs = append(addrs, f.addr)
	}
	return addrs
}

// refuse takes the link down for a reason, with all that goes by it.
func (l *kafkaLink) refuse(why obstacle) {
	for _, f := range l.forwards {
		f.refuse(why)
	}
}

// accept takes the reason away.
func (l *kafkaLink) accept(why obstacle) error {
	var errs []error
	for _, f := range l.forwards {
		errs = append(errs, f.accept(why))
	}
	return errors.Join(errs...)
}

func (l *kafkaLink) close() {
	for _, f := range l.forwards {
		f.close()
	}
}

// obstacle is a reason to refuse connections; there may be several at a time.
type obstacle int

const (
	cutOffObstacle obstacle = iota // a fault of the link
	brokerObstacle                 // the broker is down
)

// forward passes the bytes of each connection on to its target. As long as there
// is an obstacle nobody listens: to accept a connection and to close it would be
// the answer of a broker that wants TLS.
type forward struct {
	addr string
	all  sync.WaitGroup

	mu        sync.Mutex // guards what follows
	listener  net.Listener
	target    string
	obstacles map[obstacle]bool
	open      map[net.Conn]bool
}

// newForward listens at a port below those that systems number outgoing connections
// from: it must be free when the link comes back.
func newForward() (*forward, error) {
	f := &forward{obstacles: map[obstacle]bool{}, open: map[net.Conn]bool{}}
	var err error
	for range 100 {
		f.addr = fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(10000))
		if err = f.listen(); err == nil {
			return f, nil
		}
	}
	return nil, fmt.Errorf("torture: no free port among a hundred between 10000 and 20000: %w", err)
}

// listen begins to accept. The goroutine ends with the listener; close waits.
func (f *forward) listen() error {
	listener, err := net.Listen("tcp", f.addr)
	if err != nil {
		return err
	}
	f.listener = listener
	f.all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.all.Go(func() { f.pass(conn) }) // ends with either end
		}
	})
	return nil
}

// pass connects, and copies both ways until one of them has ended.
func (f *forward) pass(conn net.Conn) {
	defer reset(conn)
	f.mu.Lock()
	target, refused := f.target, f.listener == nil
	if !refused {
		f.open[conn] = true
	}
	f.mu.Unlock()
	if refused {
		return
	}
	defer f.remove(conn)
	other, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer reset(other)
	var both sync.WaitGroup
	for _, way := range [2][2]net.Conn{{conn, other}, {other, conn}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // whichever end it was: both go
			reset(conn)
			reset(other)
		})
	}
	both.Wait()
}

// reset ends a connection as a network does whose other end is gone.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it may be closed already
	}
	_ = conn.Close()
}

func (f *forward) remove(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, conn)
}

func (f *forward) refuse(why obstacle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.obstacles[why] = true
	if f.listener != nil {
		_ = f.listener.Close()
		f.listener = nil
	}
	for conn := range f.open {
		reset(conn)
	}
}

func (f *forward) accept(why obstacle) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.obstacles, why)
	if len(f.obstacles) > 0 || f.listener != nil {
		return nil
	}
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err = f.listen(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("torture: the port of a link was taken meanwhile: %w", err)
}

func (f *forward) close() {
	f.refuse(cutOffObstacle)
	f.all.Wait()
}
