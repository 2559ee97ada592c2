#include "netshape/profiles.hh"

#include <array>

namespace orrery::netshape {
namespace {

constexpr Duration us(std::int64_t value) { return Duration::microseconds(value); }
constexpr Duration ms(std::int64_t value) { return Duration::milliseconds(value); }

constexpr LinkSpec line(double mbit, Duration delay, Duration jitter = {}, double loss = 0,
                        Distribution distribution = Distribution::normal) {
  LinkSpec spec;
  spec.rate = BitRate::mbit(mbit);
  spec.delay = delay;
  spec.jitter = jitter;
  spec.loss = {loss};
  spec.distribution = distribution;
  return spec;
}

// Figures are of lines that carry nothing else, for the queue is the emulator's own. A measured
// round trip is divided evenly between the directions, since none of the sources tells them apart.
// Losses are those that a line has without congestion; where it sends again what was lost (radio,
// interleaved copper), they are zero and the jitter has what that costs. "Typical of" stands before
// what is a rounded choice of ours between the bounds that follow it.
constexpr std::array<LinkProfile, 17> table{{
    {"lan-1g", "Gigabit Ethernet, a switch in the building", line(1000, us(50)), line(1000, us(50)),
     "rate: IEEE Std 802.3 clause 40 (1000BASE-T, 802.3ab-1999). delay: typical of network card, "
     "system and switch at each end; the 100 m of cable that the clause allows are below 1us of "
     "it"},
    {"lan-10g", "10 Gigabit Ethernet, a switch in the building", line(10'000, us(25)),
     line(10'000, us(25)),
     "rate: IEEE Std 802.3 clause 55 (10GBASE-T, 802.3an-2006). delay: typical of, between lan-1g "
     "and datacenter-25g"},
    {"datacenter-25g", "a server's port at 25 Gbit/s", line(25'000, us(10)), line(25'000, us(10)),
     "rate: IEEE Std 802.3by-2016. delay: typical of a round trip of 40us between two servers; "
     "above Swift's (see datacenter-100g), below the hundreds of microseconds that Guo et al., "
     "Pingmesh, SIGCOMM 2015, see with the servers' own processing"},
    {"datacenter-100g", "a server's port at 100 Gbit/s", line(100'000, us(5)), line(100'000, us(5)),
     "rate: IEEE Std 802.3bm-2015. delay: typical of a round trip of 20us between two servers; "
     "Kumar et al., Swift, SIGCOMM 2020, have a tail below 50us that is less than three times the "
     "least"},
    {"wan-continental", "between data centres of one continent", line(200, ms(20), us(500), 0.0001),
     line(200, ms(20), us(500), 0.0001),
     "delay: below the round trip of 45ms that Verizon's service level agreement allows its "
     "backbone within the USA. rate: typical of one tenant's flow; Hsieh et al., Gaia, NSDI 2017, "
     "see about a tenth of a LAN's between cloud regions. jitter, loss: typical of, far below the "
     "50ms and 0.1% of ITU-T Y.1541 (2011), class 0"},
    {"wan-intercontinental", "between data centres across an ocean",
     line(60, ms(45), ms(1), 0.0005), line(60, ms(45), ms(1), 0.0005),
     "delay: the round trip of 90ms between New York and London in Verizon's service level "
     "agreement; across the Pacific it is longer. rate, jitter, loss: typical of, with the sources "
     "of wan-continental (Gaia, NSDI 2017; ITU-T Y.1541)"},
    {"dsl", "ADSL2+ at home", line(1, ms(19), ms(2)), line(12, ms(19), ms(2)),
     "FCC, Measuring Broadband America, 2016: Verizon's DSL at 37 to 40ms round trip, 11.3Mbit/s "
     "down where 7.1 to 15 down and 1 up were sold. Bounded by ITU-T G.992.5, about 24Mbit/s down "
     "and above 1 up. jitter: typical of"},
    {"vdsl2", "VDSL2 at home, fibre to the cabinet", line(10, ms(10), ms(1)),
     line(50, ms(10), ms(1)),
     "typical of lines sold as 50 down and 10 up; bounded by ITU-T G.993.2 (2006), 200Mbit/s both "
     "ways together. delay: typical of, between fibre and ADSL in FCC, Measuring Broadband "
     "America, 2016 (see dsl, fibre-gpon)"},
    {"cable-docsis3", "DOCSIS 3.0 at home", line(10, ms(12), ms(2)), line(100, ms(12), ms(1)),
     "typical of lines sold as 100 down and 10 up; bounded by ITU-T J.222 (DOCSIS 3.0): a channel "
     "of 6MHz has about 38Mbit/s, four or more are bonded and shared. delay: typical of, between "
     "fibre and ADSL in FCC, Measuring Broadband America, 2016. jitter: typical of, more where "
     "modems ask before they send"},
    {"fibre-gpon", "GPON to the home", line(500, ms(6), us(500)), line(500, ms(6), us(500)),
     "FCC, Measuring Broadband America, 2016: Verizon's fibre at 11.6 to 14.7ms round trip; sold "
     "as 500 both ways. Bounded by ITU-T G.984.2 (2003), 2.488Gbit/s down and 1.244 up, shared. "
     "jitter: typical of"},
    {"wifi-4", "IEEE 802.11n, two streams, 20 MHz, some neighbours",
     line(80, ms(2), ms(2), 0, Distribution::pareto),
     line(80, ms(2), ms(2), 0, Distribution::pareto),
     "rate: IEEE Std 802.11n-2009 has 144.4Mbit/s on the air; typical of what is left after "
     "contention, both directions sharing it (an emulated link does not). delay: Sui et al., "
     "Characterizing and improving WiFi latency, MobiSys 2016: round trips of 3ms at the median, "
     "20ms at the 90th percentile; our tail is lighter"},
    {"wifi-5", "IEEE 802.11ac, two streams, 80 MHz, some neighbours",
     line(400, ms(2), ms(2), 0, Distribution::pareto),
     line(400, ms(2), ms(2), 0, Distribution::pareto),
     "rate: IEEE Std 802.11ac-2013 has 866.7Mbit/s on the air; typical of, as for wifi-4. delay: "
     "as for wifi-4"},
    {"3g", "HSPA", line(1, ms(60), ms(10)), line(3, ms(60), ms(10)),
     "typical of; bounded by 14.4Mbit/s down and 5.76 up of 3GPP Releases 5 and 6, and slower than "
     "LTE in Huang et al., MobiSys 2012 (see lte)"},
    {"lte", "LTE, one carrier", line(6, ms(35), ms(5)), line(13, ms(35), ms(5)),
     "rate: medians of 13 down and 6 up in Huang et al., A close examination of performance and "
     "power characteristics of 4G LTE networks, MobiSys 2012. delay: typical of a round trip of "
     "70ms to a server on the internet, jitter likewise"},
    {"5g-sub6", "5G in a middle band, below 6 GHz", line(40, ms(15), ms(3)),
     line(300, ms(15), ms(3)),
     "rate down: the median of 304 in China in late 2021 (135 in the USA), told by Yang et al., "
     "Mobile access bandwidth in practice, SIGCOMM 2022; up: typical of. delay: typical of a round "
     "trip "
     "of 30ms to a server on the internet; 3GPP TR 38.913 aims at 4ms each way for the radio "
     "alone, and Narayanan et al., WWW 2020, see little gain over LTE"},
    {"satellite-leo", "Starlink in its first years", line(15, ms(25), ms(4), 0.005),
     line(150, ms(25), ms(4), 0.005),
     "delay: Michel et al., A first look at Starlink performance, IMC 2022: round trips of 50ms at "
     "the median, 40 and 60 at the quartiles, 20 at least, to servers in Europe. rate: typical of, "
     "within the 100 to 200 down that were promised. loss: typical of, and in bursts there"},
    {"satellite-geo", "a geostationary satellite", line(10, ms(300), ms(5), 0.001),
     line(100, ms(300), ms(5), 0.001),
     "delay: at least 600ms round trip, Michel et al., IMC 2022, whose subscription had 100 down "
     "and 10 up; RFC 2488 (1999) has 239.6 to 279.0ms of it one way for the distance. jitter, "
     "loss: typical of"},
}};

}  // namespace

std::span<const LinkProfile> link_profiles() { return table; }

const LinkProfile* find_link_profile(std::string_view name) {
  for (const LinkProfile& profile : table)
    if (profile.name == name) return &profile;
  return nullptr;
}

}  // namespace orrery::netshape
