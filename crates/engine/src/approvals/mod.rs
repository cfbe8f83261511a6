//! Who agrees that something may run: what policy says of it, what people are asked, and what
//! their answer is worth.

mod approver;
mod binding;
mod named;
mod replay;
mod request;
mod ruling;
mod script;
mod terminal;

pub use approver::Approver;
pub use replay::{Difference, Replayed};

pub(crate) use binding::{Binding, bound_to, changed, inputs_state, state_of};
pub(crate) use request::{ApprovalRequest, denied, expired, gone_by, nobody, outdated, put_off};
pub(crate) use ruling::{PriorApproval, Ruled, refused, tool_of, tools_of};
pub(crate) use script::{Script, check_scripts, scripts_now};

use std::sync::{Arc, OnceLock};

use glovebox_model::{Answer, Approval, Call, Result};

use crate::effects::Simulations;
use crate::instance::Instance;
use crate::path::CallWithConsent;
use crate::private_key::private_key;
use crate::secrets::SecretAccess;

/// What people are asked, and have agreed to.
#[derive(Debug)]
pub struct Approvals {
    instance: Arc<Instance>,
    secrets: Arc<SecretAccess>,
    simulations: Arc<Simulations>,
    key: OnceLock<[u8; 32]>,
}

impl Approvals {
    pub(crate) fn new(
        instance: &Arc<Instance>,
        secrets: &Arc<SecretAccess>,
        simulations: &Arc<Simulations>,
    ) -> Self {
        Self {
            instance: Arc::clone(instance),
            secrets: Arc::clone(secrets),
            simulations: Arc::clone(simulations),
            key: OnceLock::new(),
        }
    }

    /// What approvals are bound with: their digests tell nothing without it.
    fn approval_key(&self) -> Result<[u8; 32]> {
        if let Some(key) = self.key.get() {
            return Ok(*key);
        }
        let key = private_key(&self.instance.state().keys().join("approval.key"))?;
        Ok(*self.key.get_or_init(|| *key))
    }
}

/// A call as people have agreed to it.
pub(crate) fn answered(mut call: Call, approval: &Approval) -> CallWithConsent {
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
    CallWithConsent {
        call,
        narrowed,
        consent: Some(approval.consent()),
        // Of another program nobody has seen the scripts before.
        scripts: is_same.then(|| approval.ask.scripts.clone()),
        of_gate: false,
    }
}
