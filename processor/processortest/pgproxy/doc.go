// Package pgproxy stands between a program and PostgreSQL and breaks what
// passes, at a place that is chosen by what passes: before the third COMMIT,
// in the middle of it, after the server has done it and before its answer
// arrives. It follows the messages of the protocol (version 3), so it knows the
// text of a statement that was prepared long before.
//
// It needs nothing of the program, which may be another process in another
// language; TLS is declined, as it could not be looked into.
//
//	proxy, err := pgproxy.Listen(server)
//	proxy.SetRule(func(m pgproxy.Message) pgproxy.Action {
//		if !m.ToServer && m.Tag == "COMMIT" {
//			return pgproxy.CutBefore // committed, and nobody learns of it
//		}
//		return pgproxy.Pass
//	})
//	cmd := exec.Command("program", proxy.URL())
package pgproxy
