//! Obtain: who agreed. In-process, the person at the terminal asked for it themselves; what policy
//! lets pass without an upgrade is automatic.

use glovebox_policy::Assessed;

/// An assessed plan that may go on.
#[derive(Debug)]
pub(crate) struct Approved {
    assessed: Assessed,
}

impl Approved {
    pub(crate) fn assessed(&self) -> &Assessed {
        &self.assessed
    }
}

/// A standard action: isolated, in one workspace, without network, secrets or host IO. Policy has
/// refused whatever else was asked for.
pub(crate) fn obtain(assessed: Assessed) -> Approved {
    Approved { assessed }
}
