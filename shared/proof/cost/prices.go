package cost

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
)

// Prices is a price list.
type Prices struct {
	// Date is the month that the prices are of.
	Date   string           `json:"date"`
	Region string           `json:"region"`
	Note   string           `json:"note"`
	Prices map[string]Price `json:"prices"`
}

// Price is what a unit costs, by how many a month there are.
type Price struct {
	Unit  string `json:"unit"`
	Tiers []Tier `json:"tiers"`
}

// Tier ends at UpTo units a month; the last one has 0 there, and no end.
type Tier struct {
	UpTo float64 `json:"up_to,omitempty"`
	USD  float64 `json:"usd"`
}

//go:embed prices.json
var priceList []byte

// ListPrices is the price list.
func ListPrices() (Prices, error) { return parsePrices(priceList) }

func parsePrices(data []byte) (Prices, error) {
	var p Prices
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Prices{}, fmt.Errorf("failed to read the price list: %w", err)
	}
	if p.Date == "" || p.Region == "" {
		return Prices{}, errors.New("failed to read the price list: it has no date or no region")
	}
	for name, price := range p.Prices {
		if err := price.check(); err != nil {
			return Prices{}, fmt.Errorf("failed to read the price list: %s: %w", name, err)
		}
	}
	return p, nil
}

func (p Price) check() error {
	if p.Unit == "" || len(p.Tiers) == 0 {
		return errors.New("it has no unit or no price")
	}
	begin := 0.0
	for i, t := range p.Tiers {
		last := i == len(p.Tiers)-1
		if t.USD <= 0 || (t.UpTo == 0) != last || (!last && t.UpTo <= begin) {
			return fmt.Errorf("tier %d makes no sense", i+1)
		}
		begin = t.UpTo
	}
	return nil
}

// of is what so many units a month cost.
func (p Price) of(units float64) float64 {
	sum, begin := 0.0, 0.0
	for _, t := range p.Tiers {
		if t.UpTo == 0 || units <= t.UpTo {
			return sum + (units-begin)*t.USD
		}
		sum += (t.UpTo - begin) * t.USD
		begin = t.UpTo
	}
	return sum
}
