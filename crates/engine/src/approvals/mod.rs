//! Who agrees that something may run: what policy says of it, what people are asked, and what
//! their answer is worth.

mod approver;
mod binding;
mod here;
mod named;
mod petition;
mod replay;
mod ruling;
mod script;

pub use approver::Approver;
pub use replay::{Difference, Replayed};

pub(crate) use binding::{Binding, bound_to, changed, inputs_state, state_of};
pub(crate) use petition::{Petition, denied, expired, gone_by, nobody, outdated, put_off};
pub(crate) use ruling::{Given, Ruled, refused, tool_of, tools_of};
pub(crate) use script::{Script, check_scripts, scripts_now};

use glovebox_model::{Answer, Approval, Call};

use crate::engine::Wanted;

/// A call as people have agreed to it.
pub(crate) fn answered(mut call: Call, approval: &Approval) -> Wanted {
    let (mut narrowed, mut is_same) = (None, true);
    for reply in approval.approving() {
        match &reply.answer {
            Answer::Narrow { overrides, .. } => narrowed = Some(overrides.clone()),
            Answer::Edit { program, .. } => {
                call.program = program.clone();
                is_same = false;
            }
            Answer::AllowOnce { .. } | Answer::AllowKind { .. } | Answer::Deny { .. } => {}
        }
    }
    Wanted {
        call,
        narrowed,
        consent: Some(approval.consent()),
        // Of another program nobody has seen the scripts before.
        scripts: is_same.then(|| approval.ask.scripts.clone()),
        of_gate: false,
    }
}
