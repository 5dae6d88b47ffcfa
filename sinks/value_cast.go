package sinks

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncestream/oncestream/schema"
)

// encodeForCast is for the types that PostgreSQL parses itself. Where its parser
// would round or cut what it is given and say nothing, the value is refused
// before.
func encodeForCast(dst []byte, c *TableColumn, v schema.Value) ([]byte, error) {
	if err := checkText(c, v); err != nil {
		return dst, err
	}
	if err := checkCast(c, v); err != nil {
		return dst, err
	}
	return append(dst, v.Raw...), nil
}

// Types of pg_type.dat to which pgx gives no name.
const (
	moneyOID        = 790
	tsMultirangeOID = 4533
	tzMultirangeOID = 4534
)

func checkCast(c *TableColumn, v schema.Value) error {
	switch c.BaseOID {
	case pgtype.TimeOID, pgtype.TimetzOID:
		return checkClock(c, v)
	case pgtype.IntervalOID:
		return checkFraction(c, v, intervalDigits(c))
	case pgtype.TsrangeOID, pgtype.TstzrangeOID, tsMultirangeOID, tzMultirangeOID:
		return checkFraction(c, v, 6)
	case moneyOID:
		return checkFraction(c, v, 2)
	case pgtype.NameOID:
		return checkBytes(c, v, 63)
	case pgtype.QCharOID:
		return checkBytes(c, v, 1)
	default:
		return nil
	}
}

// checkClock takes a time of day as RFC 3339 writes it, with an offset for
// timetz and none for time, where PostgreSQL would drop it. The seconds may be
// left out, and 24:00:00 is the end of the day.
func checkClock(c *TableColumn, v schema.Value) error {
	if v.Kind != schema.String {
		return alien(c, v, `a time of day such as "15:04:05.999999" is needed`)
	}
	var st stamp
	rest, err := st.scanClock(wholeClock(v.Raw))
	if err == nil {
		err = st.scanOffset(rest)
	}
	switch {
	case errors.Is(err, errTimeRange):
		return misfit(c, v, "no such time of day")
	case err != nil:
		return alien(c, v, `it is not of the form "15:04:05.999999"`)
	case st.zoned && c.BaseOID == pgtype.TimeOID:
		return alien(c, v, "the column keeps no offset")
	case !st.zoned && c.BaseOID == pgtype.TimetzOID:
		return alien(c, v, "it has no offset, and no zone is guessed; send a Z or an offset")
	}
	return checkPrecision(c, v, &st)
}

// wholeClock adds the seconds to 15:04, and takes the end of the day for its
// beginning, which has the same form.
func wholeClock(s []byte) []byte {
	if len(s) == 5 {
		s = append(s[:5:5], ":00"...)
	}
	if bytes.HasPrefix(s, []byte("24:00:00")) && !bytes.HasPrefix(s, []byte("24:00:00.")) {
		s = append([]byte("00"), s[2:]...)
	}
	return s
}

// intervalDigits is the precision of an interval column. What else its
// declaration leaves out, as in "interval day to minute", PostgreSQL cuts.
func intervalDigits(c *TableColumn) int {
	if precision := int(c.Mod & 0xffff); c.Mod >= 0 && precision <= 6 {
		return precision
	}
	return 6
}

// checkFraction refuses a number with more digits after its point, zeros at the
// end left aside. It looks at all numbers in the text, of whatever unit.
func checkFraction(c *TableColumn, v schema.Value, most int) error {
	for rest := v.Raw; ; {
		i := bytes.IndexByte(rest, '.')
		if i < 0 {
			return nil
		}
		rest = rest[i+1:]
		digits := 0
		for n := 0; n < len(rest) && rest[n] >= '0' && rest[n] <= '9'; n++ {
			if rest[n] != '0' {
				digits = n + 1
			}
		}
		if digits > most {
			return misfit(c, v, fmt.Sprintf("it has %d digits after a point, and nothing is rounded", digits))
		}
	}
}

func checkBytes(c *TableColumn, v schema.Value, most int) error {
	if len(v.Raw) > most {
		return misfit(c, v, fmt.Sprintf("it has %d bytes, and nothing is cut", len(v.Raw)))
	}
	return nil
}
