package sinks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// wrapped is a statement behind the relation of its messages.
type wrapped struct {
	sql       string
	statement string // as it was given
	skipped   int    // characters of the statement that are left out of sql
	params    int
	before    int // characters of sql before the rest of the statement
}

// wrap puts the relation before the statement, among the statement's own WITH
// queries where it begins with them: what modifies data may only stand at the
// top.
func wrap(statement string, targets []*target) wrapped {
	names, values := make([]string, len(targets)), make([]string, len(targets))
	for i, t := range targets {
		names[i] = quote(t.Name)
		values[i] = value(t, i)
		if t.Domain != "" {
			values[i] += "::" + t.Domain
		}
	}
	rest, recursive, more := statement, "", "\n"
	if word, tail := firstWord(statement); strings.EqualFold(word, "with") {
		rest, more = tail, ",\n"
		if word, tail := firstWord(tail); strings.EqualFold(word, "recursive") {
			rest, recursive = tail, "recursive "
		}
	}
	head := fmt.Sprintf("with %smessage (%s, ordinality) as (\nselect %s, u.n\nfrom %s)%s",
		recursive, strings.Join(names, ", "), strings.Join(values, ", "), source(targets, true), more)
	return wrapped{
		sql: head + rest, statement: statement, params: len(targets),
		skipped: utf8.RuneCountInString(statement) - utf8.RuneCountInString(rest), before: utf8.RuneCountInString(head),
	}
}

// try has the server prepare the statement, and throws the result away: it is
// prepared by its text when it runs.
func (w wrapped) try(ctx context.Context, conn *pgx.Conn) error {
	described, err := conn.PgConn().Prepare(ctx, "", w.sql, nil)
	if err == nil && len(described.ParamOIDs) != w.params {
		return errors.New("the statement has parameters of its own: it reads values from the relation message")
	}
	server, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || int(server.Position) <= w.before {
		return err
	}
	return fmt.Errorf("at %s of the statement: %w", position([]rune(w.statement), int(server.Position)-1-w.before+w.skipped), err)
}

// firstWord returns the first word of a statement and what comes after it,
// passing over white space and comments.
func firstWord(s string) (word, rest string) {
	s = skipSpace(s)
	end := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' })
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}

// skipSpace passes over white space and comments, which nest in PostgreSQL.
func skipSpace(s string) string {
	for {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		switch {
		case strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
		case strings.HasPrefix(s, "/*"):
			s = skipComment(s)
		default:
			return s
		}
	}
}

func skipComment(s string) string {
	depth := 0
	for len(s) > 0 {
		switch {
		case strings.HasPrefix(s, "/*"):
			depth, s = depth+1, s[2:]
		case strings.HasPrefix(s, "*/"):
			if depth, s = depth-1, s[2:]; depth == 0 {
				return s
			}
		default:
			s = s[1:]
		}
	}
	return s
}

// readsMessage reports whether the word message occurs. It does not look at
// where: the server says what is wrong with the rest.
func readsMessage(statement string) bool {
	words := strings.FieldsFunc(strings.ToLower(statement), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	})
	return slices.Contains(words, "message")
}

// bind finds the types of the parameters.
func (s *SQL[T]) bind(ctx context.Context, conn *pgx.Conn) ([]bound[T], error) {
	var faults []error
	out := make([]bound[T], 0, len(s.Params))
	for i, p := range s.Params {
		err := s.checkParam(i)
		var c TableColumn
		if err == nil {
			c, err = typeOf(ctx, conn, p.Name, orDefault(p.Type, "text"))
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		out = append(out, bound[T]{p.Column, newTarget(c, false)})
	}
	return out, errors.Join(faults...)
}

func (s *SQL[T]) checkParam(i int) error {
	p := s.Params[i]
	switch {
	case p.Name == "":
		return errors.New("a parameter without a name")
	case p.Name == "ordinality":
		return errors.New(`a parameter cannot be called "ordinality": that is the message's place in the batch`)
	case p.Value == nil:
		return fmt.Errorf("parameter %q has no Value: make it with Field, Col or Constant", p.Name)
	case slices.ContainsFunc(s.Params[:i], func(o Param[T]) bool { return o.Name == p.Name }):
		return fmt.Errorf("parameter %q is given twice", p.Name)
	}
	return nil
}

// typeOf describes a type by its name in SQL. The name becomes part of a
// statement only after to_regtype has taken it for a type's.
func typeOf(ctx context.Context, conn *pgx.Conn, name, typ string) (c TableColumn, err error) {
	var oid *uint32
	if err = conn.QueryRow(ctx, `select to_regtype($1)::oid`, typ).Scan(&oid); err != nil {
		return c, fmt.Errorf("parameter %q: type %q: %w", name, typ, err)
	}
	if oid == nil {
		return c, fmt.Errorf("parameter %q: no type %q", name, typ)
	}
	described, err := conn.PgConn().Prepare(ctx, "", "select null::"+typ, nil)
	if err != nil {
		return c, fmt.Errorf("parameter %q: type %q: %w", name, typ, err)
	}
	columns, err := unfold(ctx, conn, `select 1, $1::text, $2::oid, $3::int, false, false, false`,
		name, *oid, described.Fields[0].TypeModifier)
	if err != nil {
		return c, fmt.Errorf("parameter %q: type %q: %w", name, typ, err)
	}
	c = columns[0]
	if c.BaseOID != *oid {
		c.Domain = c.Type
	}
	c.NotNull = false // null is for the domain's cast to refuse, missing is null
	return c, nil
}
