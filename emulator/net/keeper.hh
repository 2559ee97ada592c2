// Networks that outlive a command: `netshape up` leaves a process, the keeper, that holds all of
// one and answers on a socket; `down` ends it. What a network consists of belongs to its keeper, so
// nothing is left of it however the keeper ends.
#pragma once

#include <string>
#include <vector>

#include "emulator/net/network.hh"

namespace orrery::net {

/// Builds `network` and returns once it is up; throws what went wrong, and then nothing is left.
/// Error (usage) where one of that name is up already.
void bring_up(const Network& network, const std::string& name, const std::string& backend);

/// Names of the networks of this user that are up.
std::vector<std::string> networks_up();

/// `name`, or the only one that is up if it is empty. Error (usage) where there is none, or more
/// than one.
std::string chosen_network(const std::string& name);

/// Ends it. False if it was not up; what a keeper that was killed has left is cleared away.
bool bring_down(const std::string& name);

/// The network as it is now, as a file that bring_up() takes.
std::string show(const std::string& name);

/// Changes links, all at once or none. `what` is a node (both directions of all of its links),
/// "A->B" (one direction) or "A<->B"; `settings` are KEY=VALUE as in a file's link. Throws
/// InvalidFile or Error with what would be right. Returns a line a direction, as it is then.
std::string change(const std::string& name, const std::string& what,
                   const std::vector<std::string>& settings);

/// Moves this process, which must have one thread, onto a node of it.
void enter(const std::string& name, const std::string& node);

}  // namespace orrery::net
