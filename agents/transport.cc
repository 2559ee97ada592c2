#include "agents/transport.hh"

namespace orrery {

const char* to_string(MessageKind kind) {
  switch (kind) {
    case MessageKind::activation:
      return "activation";
    case MessageKind::gradient:
      return "gradient";
    case MessageKind::parameter:
      return "parameter";
    case MessageKind::scalar:
      return "scalar";
    case MessageKind::control:
      return "control";
    case MessageKind::move:
      return "move";
  }
  return "?";
}

}  // namespace orrery
