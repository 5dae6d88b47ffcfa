package sinks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncestream/oncestream/schema"
)

// Times are RFC 3339 text, exact to the microsecond; a space may stand for the
// T, and the offset may be written as PostgreSQL does (+02, +0200). A digit that
// the column would round away is refused, and so is a leap second. Years run
// from 0001 to 9999. "infinity" and "-infinity" are PostgreSQL's own.
//
//	timestamptz  needs the offset: no zone is guessed
//	timestamp    takes no offset, or Z, which it keeps as the time in UTC
//	date         takes the date alone

// stamp is what a text says.
type stamp struct {
	days   int   // since 2000-01-01
	micros int64 // of the day
	digits int   // significant digits after the second
	offset int   // seconds east of UTC
	clock  bool  // there is a time of day
	zoned  bool  // there is an offset
}

var (
	errTimeForm  = errors.New(`it is not of the form "2006-01-02T15:04:05.999999Z"`)
	errTimeRange = errors.New("no such date or time")
)

// scanStamp reads a date, a time of day if there is one, an offset if there is one.
func scanStamp(s []byte) (st stamp, err error) {
	if len(s) < 10 || s[4] != '-' || s[7] != '-' {
		return st, errTimeForm
	}
	year, month, day := number(s[:4]), number(s[5:7]), number(s[8:10])
	if year < 0 || month < 0 || day < 0 {
		return st, errTimeForm
	}
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if year == 0 || date.Day() != day || int(date.Month()) != month {
		return st, errTimeRange
	}
	st.days = int(date.Unix()/86400) - epochDays
	if s = s[10:]; len(s) == 0 {
		return st, nil
	}
	if s[0] != 'T' && s[0] != 't' && s[0] != ' ' {
		return st, errTimeForm
	}
	st.clock = true
	if s, err = st.scanClock(s[1:]); err != nil {
		return st, err
	}
	return st, st.scanOffset(s)
}

// epochDays is PostgreSQL's epoch, 2000-01-01, in days of Unix time.
const epochDays = 10957

func (st *stamp) scanClock(s []byte) (rest []byte, err error) {
	if len(s) < 8 || s[2] != ':' || s[5] != ':' {
		return nil, errTimeForm
	}
	hour, minute, second := number(s[:2]), number(s[3:5]), number(s[6:8])
	if hour < 0 || minute < 0 || second < 0 {
		return nil, errTimeForm
	}
	if hour > 23 || minute > 59 || second > 59 {
		return nil, errTimeRange
	}
	st.micros = int64(hour*3600+minute*60+second) * 1e6
	s = s[8:]
	if len(s) == 0 || s[0] != '.' {
		return s, nil
	}
	i := 1
	for unit := int64(100_000); i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		if s[i] != '0' {
			st.digits = i
		}
		st.micros += int64(s[i]-'0') * unit
		unit /= 10
	}
	if i == 1 {
		return nil, errTimeForm
	}
	return s[i:], nil
}

func (st *stamp) scanOffset(s []byte) error {
	if len(s) == 0 {
		return nil
	}
	st.zoned = true
	if len(s) == 1 && (s[0] == 'Z' || s[0] == 'z') {
		return nil
	}
	if s[0] != '+' && s[0] != '-' || len(s) < 3 {
		return errTimeForm
	}
	hour, minute := number(s[1:3]), 0
	switch {
	case len(s) == 5:
		minute = number(s[3:5])
	case len(s) == 6 && s[3] == ':':
		minute = number(s[4:6])
	case len(s) != 3:
		return errTimeForm
	}
	if hour < 0 || minute < 0 {
		return errTimeForm
	}
	if hour > 15 || minute > 59 {
		return errTimeRange
	}
	st.offset = hour*3600 + minute*60
	if s[0] == '-' {
		st.offset = -st.offset
	}
	return nil
}

// number returns -1 where a byte is no digit.
func number(s []byte) int {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// stampOf returns what the text says, or what it says of infinity: -1, 0, 1.
func stampOf(c *TableColumn, v schema.Value) (st stamp, infinite int, err error) {
	if v.Kind == schema.Number {
		return st, 0, alien(c, v, "the unit and epoch of a number are not known; send RFC 3339 text")
	}
	if v.Kind != schema.String {
		return st, 0, alien(c, v, "RFC 3339 text is needed")
	}
	switch string(v.Raw) {
	case "infinity":
		return st, 1, nil
	case "-infinity":
		return st, -1, nil
	}
	st, err = scanStamp(v.Raw)
	switch {
	case errors.Is(err, errTimeRange):
		return st, 0, misfit(c, v, err.Error())
	case err != nil:
		return st, 0, alien(c, v, err.Error())
	}
	return st, 0, checkPrecision(c, v, &st)
}

func checkPrecision(c *TableColumn, v schema.Value, st *stamp) error {
	precision := 6
	if c.BaseOID != pgtype.DateOID && c.Mod >= 0 {
		precision = int(c.Mod)
	}
	if st.digits > precision {
		return misfit(c, v, fmt.Sprintf("it has %d digits after the second, and nothing is rounded", st.digits))
	}
	return nil
}

func encodeDate(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	st, infinite, err := stampOf(c, v)
	switch {
	case err != nil:
		return dst, err
	case infinite != 0:
		return binary.BigEndian.AppendUint32(dst, uint32(pick(infinite, math.MaxInt32, math.MinInt32))), nil
	case st.clock:
		return dst, misfit(c, v, "it has a time of day, which the column would drop")
	}
	return binary.BigEndian.AppendUint32(dst, uint32(st.days)), nil
}

func encodeTimestamp(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	st, infinite, err := stampOf(c, v)
	if err != nil {
		return dst, err
	}
	if st.offset != 0 {
		return dst, alien(c, v, "the column keeps no offset; send UTC, or make the column a timestamptz")
	}
	return appendMicros(dst, &st, infinite), nil
}

func encodeTimestamptz(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	st, infinite, err := stampOf(c, v)
	if err != nil {
		return dst, err
	}
	if !st.zoned && infinite == 0 {
		return dst, alien(c, v, "it has no offset, and no zone is guessed; send a Z or an offset")
	}
	return appendMicros(dst, &st, infinite), nil
}

func appendMicros(dst []byte, st *stamp, infinite int) []byte {
	n := int64(st.days)*86400e6 + st.micros - int64(st.offset)*1e6
	if infinite != 0 {
		n = pick(infinite, math.MaxInt64, math.MinInt64)
	}
	return binary.BigEndian.AppendUint64(dst, uint64(n))
}

func pick(sign int, positive, negative int64) int64 {
	if sign > 0 {
		return positive
	}
	return negative
}
