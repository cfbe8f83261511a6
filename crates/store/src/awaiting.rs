//! Execs that wait for people. Such a row keeps its sealed call as a queued one does; it cannot be
//! started, only be sent to the queue by an approval, which is used up in the same transaction.

use glovebox_model::{Approval, ApprovalId, Code, Error, Exec, Result, Stage, Status};

use crate::admission::{Admitted, Terms};
use crate::approval_rows;
use crate::failure::{at, internal};
use crate::leases::{self, NOBODY};
use crate::ledger::exec_proof::ensure_exec_unchanged;
use crate::rows::{self, OpenRow, StoredRecord, bare};
use crate::sql::Session;
use crate::stages::{Adopted, Opened};
use crate::store::Store;
use crate::summary;

impl Store {
    /// As [`Store::admit`], for an exec that people are asked about: its row, its sealed call and
    /// the request come together.
    pub fn await_approval(
        &self,
        owner: &str,
        record: &Exec,
        terms: Terms<'_>,
        approval: &Approval,
    ) -> Result<Admitted> {
        if terms.sealed_call.is_none() {
            return Err(internal("the call of an exec that waits must be kept"));
        }
        self.admit_or_ask(owner, record, terms, Some(approval))
    }

    /// People are asked about an exec that has a row: one that was queued, or whose edited program
    /// needs an answer of its own. Requests about it that are still open are void. `sealed_call`
    /// takes the place of the one that is kept.
    pub fn await_again(
        &self,
        owner: &str,
        opened: &Opened,
        record: &Exec,
        sealed_call: Option<&[u8]>,
        approval: &Approval,
    ) -> Result<()> {
        let record = bare(record.clone());
        let wait = || {
            let record = self.masked(opened.space_id(), record)?;
            let approval = self.masked(opened.space_id(), approval.clone())?;
            opened.ensure_of(&record)?;
            ensure_about(&approval, &record)?;
            ensure_status(&record, Status::AwaitingApproval)?;
            let stored = StoredRecord::new(&record)?;
            let draft = summary::waits_for_people(owner, &record, &stored);
            let (id, owner) = (opened.id(), owner.to_owned());
            let sealed_call = sealed_call.map(<[u8]>::to_vec);
            self.write(move |chains| {
                let session = chains.session();
                let row = own_row(session, &owner, &id)?;
                if !matches!(row.status, Some(Status::Queued | Status::AwaitingApproval)) {
                    return Err(not_waiting(&id.1));
                }
                approval_rows::void_of(chains, &id, "people are asked anew")?;
                chains.append(draft)?;
                rows::rewrite(session, &id, &stored)?;
                rows::replace_call(session, &id, sealed_call.as_deref())?;
                approval_rows::insert(chains, &approval)
            })
        };
        wait().map_err(at(Stage::Obtain))
    }

    /// Sends an exec that waited for people to the queue, and uses its approval up. `sealed_call`
    /// takes the place of the one that is kept, when people narrowed or edited it. A conflict when
    /// it does not wait any more, or the approval is another exec's, was used, or is for something
    /// else.
    pub fn queue_approved(
        &self,
        owner: &str,
        opened: &Opened,
        record: &Exec,
        sealed_call: Option<&[u8]>,
        approval: &ApprovalId,
        digest: &str,
    ) -> Result<Approval> {
        let record = bare(record.clone());
        let queue = || {
            let record = self.masked(opened.space_id(), record)?;
            opened.ensure_of(&record)?;
            ensure_status(&record, Status::Queued)?;
            let stored = StoredRecord::new(&record)?;
            let draft = summary::queued_again(owner, &record, &stored);
            let (id, owner) = (opened.id(), owner.to_owned());
            let (approval, digest) = (approval.clone(), digest.to_owned());
            let sealed_call = sealed_call.map(<[u8]>::to_vec);
            self.write(move |chains| {
                let session = chains.session();
                let row = own_row(session, &owner, &id)?;
                if row.status != Some(Status::AwaitingApproval) {
                    return Err(not_waiting(&id.1));
                }
                let approval = approval_rows::find(session, &approval)?;
                ensure_of_exec(&approval, &id)?;
                let approval = match approval_rows::spend(chains, approval, &digest)? {
                    Ok(approval) => approval,
                    Err(expired) => return Ok(Err(expired)),
                };
                chains.append(draft)?;
                rows::rewrite(session, &id, &stored)?;
                rows::replace_call(session, &id, sealed_call.as_deref())?;
                Ok(Ok(approval))
            })
            .and_then(|queued| queued)
        };
        queue().map_err(at(Stage::Obtain))
    }

    /// As [`Store::adopt_queued`], for execs that wait for people.
    pub fn adopt_awaiting(&self, dead_owner: &str, new_owner: &str) -> Result<Vec<Adopted>> {
        self.adopt(dead_owner, new_owner, Status::AwaitingApproval, |_| true)
    }

    /// The same for those of [`NOBODY`](crate::NOBODY) that the new owner can carry out.
    pub fn take_awaiting(
        &self,
        new_owner: &str,
        mine: impl Fn(&Exec) -> bool + Send + 'static,
    ) -> Result<Vec<Adopted>> {
        self.adopt(NOBODY, new_owner, Status::AwaitingApproval, mine)
    }
}

type Id = (glovebox_model::SpaceId, glovebox_model::ExecId);

fn own_row(session: &Session, owner: &str, id: &Id) -> Result<OpenRow> {
    leases::ensure_held(session, owner)?;
    let row = rows::ensure_open(session, &id.0, &id.1)?;
    rows::ensure_owned(&row, owner, &id.1)?;
    ensure_exec_unchanged(session, id)?;
    Ok(row)
}

/// That a request is about the exec that it comes with.
pub(crate) fn ensure_about(approval: &Approval, record: &Exec) -> Result<()> {
    let id = (record.ids.space_id.clone(), record.exec_id.clone());
    ensure_of_exec(approval, &id)
}

fn ensure_of_exec(approval: &Approval, id: &Id) -> Result<()> {
    if (&approval.space_id, &approval.exec_id) == (&id.0, &id.1) {
        return Ok(());
    }
    Err(Error::new(
        Code::Conflict,
        Stage::Obtain,
        format!("approval `{}` is another exec's", approval.id),
    )
    .hint("an approval lets the one exec start that it is about")
    .of_exec(id.1.clone()))
}

fn ensure_status(record: &Exec, wanted: Status) -> Result<()> {
    if record.status == wanted {
        return Ok(());
    }
    Err(internal(format!(
        "an exec that should be `{wanted}` is `{}`",
        record.status
    )))
}

fn not_waiting(id: &glovebox_model::ExecId) -> Error {
    Error::new(
        Code::Conflict,
        Stage::Obtain,
        format!("exec `{id}` does not wait any more"),
    )
    .of_exec(id.clone())
}
