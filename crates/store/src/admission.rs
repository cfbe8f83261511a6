//! Letting a request in: its key, its budget, its row and its entry in one transaction.

use glovebox_model::{Approval, Exec, ExecId, Result, Stage, Status};

use crate::approval_rows;
use crate::awaiting::ensure_about;
use crate::budget::{self, BudgetTerms, Used};
use crate::failure::{at, internal};
use crate::request_keys::{self, RequestKey};
use crate::rows::{self, Arrival, StoredRecord, bare};
use crate::stages::Opened;
use crate::store::Store;
use crate::{leases, summary};

/// On what terms an exec is let in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms<'a> {
    pub key: Option<&'a RequestKey>,
    pub budget: Option<BudgetTerms<'a>>,
    /// What is needed to run an exec later that waits, maybe by another server.
    pub sealed_call: Option<&'a [u8]>,
}

#[derive(Debug)]
pub enum Admitted {
    Opened(Opened),
    /// The same key with the same request made this exec before; nothing was written.
    Existing(ExecId),
}

impl Store {
    /// Writes the row and the `planned` entry, durably and together, when the terms allow it.
    pub fn admit(&self, owner: &str, record: &Exec, terms: Terms<'_>) -> Result<Admitted> {
        self.admit_or_ask(owner, record, terms, None)
    }

    pub(crate) fn admit_or_ask(
        &self,
        owner: &str,
        record: &Exec,
        terms: Terms<'_>,
        approval: Option<&Approval>,
    ) -> Result<Admitted> {
        let space = &record.ids.space_id;
        let record = bare(record.clone());
        let admit = || {
            let record = self.masked(space, record)?;
            let approval = approval.cloned();
            let approval = approval.map(|it| self.masked(space, it)).transpose()?;
            if record.status.is_final() {
                return Err(internal(format!(
                    "an exec cannot be opened as `{}`",
                    record.status
                )));
            }
            if approval.is_some() != (record.status == Status::AwaitingApproval) {
                return Err(internal(
                    "an exec waits for people whom nobody asks, or asks and goes on",
                ));
            }
            if let Some(approval) = &approval {
                ensure_about(approval, &record)?;
            }
            let waits = matches!(record.status, Status::Queued | Status::AwaitingApproval);
            if terms.sealed_call.is_some() && !waits {
                return Err(internal("only the call of an exec that waits is kept"));
            }
            let stored = StoredRecord::new(&record)?;
            let draft = summary::planned(owner, &record, &stored);
            let owner = owner.to_owned();
            let key = terms.key.cloned();
            let budget = terms
                .budget
                .map(|terms| (terms.agent.to_owned(), terms.budget));
            let sealed_call = terms.sealed_call.map(<[u8]>::to_vec);
            self.write(move |chains| {
                let session = chains.session();
                let space = &record.ids.space_id;
                leases::ensure_held(session, &owner)?;
                if let Some(key) = &key
                    && let Some(existing) = request_keys::exec_of(session, space, key)?
                {
                    return Ok(Admitted::Existing(existing));
                }
                rows::ensure_new(session, &record)?;
                if let Some((agent, budget)) = &budget {
                    budget::ensure_left(session, space, agent, chains.now(), budget)?;
                    budget::add(session, space, agent, chains.now(), Used::ONE_EXEC)?;
                }
                let link = chains.append(draft)?;
                let id = (record.ids.space_id, record.exec_id);
                rows::insert(session, &id, &owner, &stored, link, Arrival::Open)?;
                if let Some(key) = &key {
                    request_keys::keep_exec(chains, &id, &owner, key)?;
                }
                if let Some(call) = &sealed_call {
                    rows::keep_call(session, &id, call)?;
                }
                if let Some(approval) = &approval {
                    approval_rows::insert(chains, approval)?;
                }
                Ok(Admitted::Opened(Opened::new(id, owner)))
            })
        };
        admit().map_err(at(Stage::Open))
    }
}
