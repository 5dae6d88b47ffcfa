package pgproxy

// Move has new connections go to another server, as a name or an address does
// that follows a failover. Those that are open stay where they are until they are
// cut. The rest of the connection string (database, user, settings) must be the
// same on both.
func (p *Proxy) Move(server string) error {
	target, err := address(server)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	return nil
}
