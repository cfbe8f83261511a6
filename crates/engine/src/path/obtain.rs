//! Obtain: who agreed. Policy lets most things pass by itself; for the rest people were asked, and
//! what they said is bound to the very plan.

use glovebox_model::{Consent, Ruling};
use glovebox_policy::Assessed;

use crate::approvals::{ApprovalRequest, Ruled};

/// An assessed plan that may go on.
#[derive(Debug)]
pub(crate) struct Approved {
    assessed: Assessed,
    ruling: Ruling,
    consent: Consent,
}

impl Approved {
    pub(crate) fn assessed(&self) -> &Assessed {
        &self.assessed
    }

    pub(crate) fn ruling(&self) -> &Ruling {
        &self.ruling
    }

    pub(crate) fn consent(&self) -> &Consent {
        &self.consent
    }
}

/// `Err`: it waits for people.
#[allow(
    clippy::result_large_err,
    reason = "both are large, and a request is no error"
)]
pub(crate) fn obtain(ruled: Ruled) -> Result<Approved, ApprovalRequest> {
    match ruled {
        Ruled::Agreed {
            assessed,
            ruling,
            consent,
        } => Ok(Approved {
            assessed,
            ruling,
            consent,
        }),
        Ruled::Asks(approval_request) => Err(approval_request),
    }
}
