//! Code in another language inside a command: whether it could start a program.

use glovebox_model::{RiskSignal, Tier};

use crate::outline::{Origin, Tongue};
use crate::signal::{FILE_WRITE, NETWORK_CLIENT, SCRIPT_FILE, SYSTEM_MODULE, SignalKind, Signals};

/// Whether something was found in code by which it could start a program.
pub(crate) fn may_start(tongue: Tongue, code: &str) -> bool {
    let mut found = Signals::default();
    if tongue != Tongue::Other {
        crate::code::read(tongue, code, None, Origin::Program, &mut found);
    }
    let found = found.list();
    // What a module of somebody's own holds is not in the code.
    if found.iter().any(|it| it.name == SCRIPT_FILE.name) {
        return true;
    }
    let mut signs = found.iter().filter(|it| it.tier >= Tier::High);
    let tame = |it: &RiskSignal| TAME.iter().any(|kind| kind.name == it.name);
    match tongue {
        Tongue::Other => true,
        Tongue::Python if found.iter().any(tame) && crate::code::is_tame(code) => {
            signs.any(|it| !tame(it))
        }
        Tongue::Python | Tongue::Javascript => signs.next().is_some(),
    }
}

/// Signs by which alone nothing is started.
const TAME: [SignalKind; 3] = [SYSTEM_MODULE, FILE_WRITE, NETWORK_CLIENT];
