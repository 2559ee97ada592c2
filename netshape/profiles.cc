#include "netshape/profiles.hh"

#include <array>

namespace orrery::netshape {
namespace {

LinkSpec link(double mbit, std::int64_t delay_us, Queue queue = Duration::milliseconds(50)) {
  LinkSpec spec;
  spec.rate = BitRate::mbit(mbit);
  spec.delay = Duration::microseconds(delay_us);
  spec.queue = queue;
  return spec;
}

LinkSpec with_jitter(LinkSpec spec, std::int64_t jitter_us, Distribution distribution) {
  spec.jitter = Duration::microseconds(jitter_us);
  spec.distribution = distribution;
  return spec;
}

LinkSpec with_loss(LinkSpec spec, double share, double in_a_row) {
  spec.burst_loss = gilbert({share}, in_a_row);
  return spec;
}

// Where a figure is not its source's own, the source says what it was taken from.
const std::array table{
    LinkProfile{"lan-1g", "wired office network", link(1000, 50), link(1000, 50),
                "rate: IEEE 802.3ab; delay: an assumption, a round trip of 0.2 ms in one building"},
    LinkProfile{"datacenter-10g", "server of a data centre", link(10'000, 54), link(10'000, 54),
                "delay: a quarter of the median round trip of 216 us between servers of a pod in "
                "Guo et al., Pingmesh, SIGCOMM 2015; rate: IEEE 802.3ae"},
    LinkProfile{"datacenter-100g", "server of a data centre, 2020s", link(100'000, 10),
                link(100'000, 10),
                "rate: IEEE 802.3bj; delay: an assumption, without the hosts' software in it"},
    LinkProfile{
        "wan-continental", "site of one continent", link(1000, 15'000), link(1000, 15'000),
        "delay: half of 4,000 km at 5 us a km (ITU-T G.114, table A.1), routes half as long "
        "again; rate: an assumption"},
    LinkProfile{
        "wan-intercontinental", "site across an ocean", link(1000, 34'000), link(1000, 34'000),
        "delay: half of 9,000 km at 5 us a km (ITU-T G.114, table A.1), routes half as long "
        "again; rate: an assumption"},
    LinkProfile{
        "dsl", "home on ADSL2+", link(1, 10'000, Duration::milliseconds(200)),
        link(12, 10'000, Duration::milliseconds(100)),
        "rates: half of what ITU-T G.992.5 allows downstream, all of it upstream; delay and "
        "deep queues: of the order found by Sundaresan et al., Broadband Internet "
        "Performance, SIGCOMM 2011"},
    LinkProfile{"cable", "home on DOCSIS 3.0", link(10, 8'000, Duration::milliseconds(150)),
                link(100, 8'000, Duration::milliseconds(50)),
                "of the order found by Sundaresan et al., Broadband Internet Performance, SIGCOMM "
                "2011; rates: an ordinary plan"},
    LinkProfile{"fibre", "home on a passive optical network", link(300, 2'000), link(300, 2'000),
                "technology: ITU-T G.984; rates and delay: assumptions, an ordinary plan"},
    LinkProfile{
        "wifi", "laptop on a busy wireless network",
        with_loss(with_jitter(link(100, 3'000), 900, Distribution::pareto), 0.001, 3),
        with_loss(with_jitter(link(150, 3'000), 900, Distribution::pareto), 0.001, 3),
        "technology: IEEE 802.11ac; all figures are assumptions, heavy tails as reported by "
        "Sui et al., MobiSys 2016"},
    LinkProfile{
        "lte", "phone on 4G",
        with_jitter(link(5.64, 35'000, Duration::milliseconds(200)), 5'000, Distribution::normal),
        with_jitter(link(12.74, 35'000, Duration::milliseconds(200)), 5'000, Distribution::normal),
        "rates and round trip (70 ms): medians of Huang et al., A Close Examination of "
        "Performance and Power Characteristics of 4G LTE Networks, MobiSys 2012; jitter: an "
        "assumption"},
    LinkProfile{
        "5g", "phone on mid-band 5G",
        with_jitter(link(130, 10'000, Duration::milliseconds(100)), 1'500, Distribution::normal),
        with_jitter(link(880, 10'000, Duration::milliseconds(100)), 1'500, Distribution::normal),
        "rates: about those of Xu et al., Understanding Operational 5G, SIGCOMM 2020; delay "
        "and jitter: assumptions of the order reported there"},
    LinkProfile{
        "satellite-leo", "dish to satellites in low orbit",
        with_jitter(link(17, 22'000, Duration::milliseconds(100)), 3'000, Distribution::normal),
        with_jitter(link(178, 22'000, Duration::milliseconds(100)), 3'000, Distribution::normal),
        "about the medians of Michel et al., A First Look at Starlink Performance, IMC 2022; "
        "jitter: an assumption"},
    LinkProfile{"satellite-geo", "dish to a geostationary satellite",
                link(3, 260'000, Duration::milliseconds(300)),
                link(25, 260'000, Duration::milliseconds(300)),
                "delay: between the 239.6 and 279.0 ms of RFC 2488, section 2; rates: the FCC's "
                "definition of broadband of 2015"},
};

}  // namespace

std::span<const LinkProfile> link_profiles() { return table; }

const LinkProfile* find_link_profile(std::string_view name) {
  for (const LinkProfile& profile : table)
    if (profile.name == name) return &profile;
  return nullptr;
}

}  // namespace orrery::netshape
