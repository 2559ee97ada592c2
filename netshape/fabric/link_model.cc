#include "netshape/fabric/link_model.hh"

#include <cmath>

namespace orrery::netshape {

Chance chance(Probability p) { return static_cast<Chance>(std::llround(std::ldexp(p.value, 32))); }

LinkModel model_of(const LinkPlan& link) {
  const LinkSpec& spec = link.spec;
  LinkModel model;
  model.seed = link.seed;
  model.loss = chance(spec.loss);
  model.burst_loss = spec.burst_loss;
  model.duplicate = chance(spec.duplicate);
  model.corrupt = chance(spec.corrupt);
  model.reorder = chance(spec.reorder);
  if (spec.rate) {
    model.bits_per_second = spec.rate->bits_per_second;
    model.overhead = link.overhead.value;
    model.queue_bytes = link.queue_bytes.value;
  }
  model.delay = spec.delay;
  model.jitter = spec.jitter;
  // The kernel's own tables: both backends draw from the same distribution.
  if (spec.jitter.ns > 0) model.quantiles = quantiles(link.path.table);
  model.keep_order = spec.keep_order;
  return model;
}

}  // namespace orrery::netshape
