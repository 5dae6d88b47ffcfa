package pgproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

var errNoProtocol = errors.New("pgproxy: this is not PostgreSQL's protocol")

// Proxy listens on an address of its own and forwards to a server.
type Proxy struct {
	listener      net.Listener
	server        string // connection string
	accepting     sync.WaitGroup
	mu            sync.Mutex
	target        string // address
	rule          Rule
	link          Link
	down          bool
	sessions      map[*session]bool
	opened        int
	cuts, refused int
}

// Listen starts a proxy on a free port of 127.0.0.1 before the server of the
// connection string, which is a URI with one host.
func Listen(server string) (*Proxy, error) {
	target, err := address(server)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("pgproxy: %w", err)
	}
	p := &Proxy{listener: listener, target: target, server: server, sessions: map[*session]bool{}}
	// Ends with the listener, and Close waits for it.
	p.accepting.Go(p.accept)
	return p, nil
}

// address is where the server of a connection string listens.
func address(server string) (string, error) {
	config, err := pgconn.ParseConfig(server)
	if err != nil {
		return "", fmt.Errorf("pgproxy: %w", err)
	}
	network, target := pgconn.NetworkAddress(config.Host, config.Port)
	if network != "tcp" {
		return "", fmt.Errorf("pgproxy: %s: only TCP can be put behind a proxy", target)
	}
	return target, nil
}

// URL is the server's connection string by way of the proxy.
func (p *Proxy) URL() string {
	u, err := url.Parse(p.server)
	if err != nil {
		return p.server
	}
	q := u.Query()
	q.Set("sslmode", "disable")
	// libpq reads a plus as a plus, not as a space.
	u.Host, u.RawQuery = p.listener.Addr().String(), strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String()
}

// SetRule replaces the rule; nil lets everything pass.
func (p *Proxy) SetRule(r Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = r
}

// SetLink replaces the link's qualities.
func (p *Proxy) SetLink(l Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link = l
}

// Down cuts all connections and refuses new ones until Up.
func (p *Proxy) Down() {
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	p.CutAll()
}

// Up takes connections again.
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// CutAll resets all connections and returns how many there were.
func (p *Proxy) CutAll() int {
	p.mu.Lock()
	all := make([]*session, 0, len(p.sessions))
	for s := range p.sessions {
		all = append(all, s)
	}
	p.mu.Unlock()
	for _, s := range all {
		s.cut()
	}
	return len(all)
}

// Stats are what has happened so far.
type Stats struct {
	// Opened connections, those of them that the proxy has cut, and those that it
	// has refused.
	Opened, Cut, Refused int
}

// Stats returns what has happened so far.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{p.opened, p.cuts, p.refused}
}

// Close cuts everything and waits until nothing runs any more.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Down()
	p.accepting.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		s, ok := p.open(client)
		if !ok {
			reset(client)
			continue
		}
		// Ends with its connection.
		p.accepting.Go(func() {
			s.run()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.sessions, s)
		})
	}
}

// open makes a session of a client, unless the link is down.
func (p *Proxy) open(client net.Conn) (*session, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		p.refused++
		return nil, false
	}
	p.opened++
	s := newSession(p, p.opened, client, p.target)
	p.sessions[s] = true
	return s, true
}

// decide asks the rule.
func (p *Proxy) decide(m Message) (Action, Link) {
	p.mu.Lock()
	rule, link := p.rule, p.link
	p.mu.Unlock()
	if rule == nil {
		return Pass, link
	}
	return rule(m), link
}

// reset closes a connection so that the other end sees it broken, not ended.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
