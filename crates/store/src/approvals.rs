//! Requests to people: asked, found, answered, used once, or gone. Every change is one transaction
//! with its entry, and writers come one after the other: of two answers at once one is first, on
//! whatever server.

use glovebox_model::{
    Answer, Approval, ApprovalId, ApprovalState, Code, Error, ExecId, GrantId, Page,
    PartialProfile, Reply, Result, SpaceId, Stage, Via,
};
use jiff::Timestamp;
use serde_json::json;

use crate::approval_rows::{
    self, ApprovalRow, COLUMNS, append, conflict, expire, expired, not_found, read_row, settled,
    shown,
};
use crate::failure::{at, internal};
use crate::grants;
use crate::ledger::chain::Chains;
use crate::outbox_rows::Happening;
use crate::page::{bad_cursor, page_size, sql_limit};
use crate::sql::{Session, Value, values};
use crate::store::Store;

/// Those that are expired at once, so that no call takes long.
const EXPIRED_MOST: i64 = 1000;

/// Which approvals to list.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    pub space: Option<SpaceId>,
    pub state: Option<ApprovalState>,
    pub exec: Option<ExecId>,
    /// Wants a space.
    pub conversation_id: Option<String>,
    /// At most so many; 0 means the default of 50, and nobody gets more than 1000.
    pub limit: usize,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

impl ApprovalFilter {
    pub(crate) fn query(&self, session: &Session) -> Result<(String, Vec<Value<'_>>)> {
        if self.conversation_id.is_some() && self.space.is_none() {
            return Err(Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                "a conversation is known only in its space",
            )
            .hint("name the space too"));
        }
        let mut values: Vec<Value<'_>> = vec![sql_limit(self.limit).into()];
        let mut conditions = Vec::new();
        let mut add = |column: &str, value: Value<'static>, walked: bool| {
            values.push(value);
            let place = values.len();
            // What is done to the column keeps it out of the choice of index.
            conditions.push(match walked {
                true => format!("{column} = ?{place}"),
                false => format!("{column} || '' = ?{place}"),
            });
        };
        // The narrowest is walked; the others are only looked at.
        let by_exec = self.exec.is_some();
        let by_conversation = !by_exec && self.conversation_id.is_some();
        if let Some(exec) = &self.exec {
            add("exec_id", exec.to_string().into(), true);
        }
        if let Some(space) = &self.space {
            add("space_id", space.to_string().into(), !by_exec);
        }
        if let Some(conversation) = &self.conversation_id {
            let indexed = session.indexed(conversation).into_owned();
            add("conversation_id", indexed.into(), by_conversation);
        }
        if let Some(state) = self.state {
            let walked = !by_exec && !by_conversation;
            add("state", state.as_str().to_owned().into(), walked);
        }
        after_cursor(
            "approval_id",
            self.cursor.as_deref(),
            &mut values,
            &mut conditions,
        )?;
        let filter = match conditions.is_empty() {
            true => String::new(),
            false => format!("WHERE {}", conditions.join(" AND ")),
        };
        let sql = format!(
            "SELECT {COLUMNS}, created_at FROM approvals {filter}
             ORDER BY created_at DESC, approval_id DESC LIMIT ?1"
        );
        Ok((sql, values))
    }
}

/// Of listings that are ordered by age, the newest first.
pub(crate) fn after_cursor<'v>(
    id_column: &str,
    cursor: Option<&'v str>,
    values: &mut Vec<Value<'v>>,
    conditions: &mut Vec<String>,
) -> Result<()> {
    let Some(cursor) = cursor else { return Ok(()) };
    let (at, id) = cursor.split_once('.').ok_or_else(|| bad_cursor(cursor))?;
    let at: i64 = at.parse().map_err(|_| bad_cursor(cursor))?;
    let place = values.len();
    values.extend_from_slice(values![at, id]);
    conditions.push(format!(
        "(created_at, {id_column}) < (?{}, ?{})",
        place + 1,
        place + 2
    ));
    Ok(())
}

/// The kind of action that an answer allows from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGrant {
    pub id: GrantId,
    /// In the one form that policy compares.
    pub kind: String,
    pub shown: String,
    pub expires_at: Timestamp,
}

impl Store {
    /// Writes a new request and the entry that says so, for an exec that has no row: one of a
    /// process that waits itself. See [`Store::await_approval`] for the others.
    pub fn insert_approval(&self, approval: &Approval) -> Result<()> {
        let masked = self.masked(&approval.space_id, approval.clone());
        let approval = masked.map_err(at(Stage::Obtain))?;
        self.write(move |chains| approval_rows::insert(chains, &approval))
            .map_err(at(Stage::Obtain))
    }

    /// Another space's is not found, unless no space is named.
    pub fn approval(&self, space: Option<&SpaceId>, id: &ApprovalId) -> Result<Approval> {
        let row = self.ask("read the approval", |session| {
            session.row(
                &format!("SELECT {COLUMNS} FROM approvals WHERE approval_id = ?1"),
                values![id.as_str()],
                read_row,
            )
        })?;
        let found = row.map(ApprovalRow::into_approval).transpose()?;
        found
            .filter(|it| space.is_none_or(|space| it.space_id == *space))
            .ok_or_else(|| not_found(id))
    }

    /// Newest first.
    pub fn approvals(&self, filter: &ApprovalFilter) -> Result<Page<Approval>> {
        self.read(|session| {
            let (sql, values) = filter.query(session)?;
            let rows = session.rows(&sql, &values, |row| {
                Ok((read_row(row)?, row.get::<i64>(2)?))
            });
            let rows = crate::failure::Doing::doing(rows, "list the approvals")?;
            let approvals = rows
                .into_iter()
                .map(|(row, at)| Ok((row.into_approval()?, at)))
                .collect::<Result<Vec<_>>>()?;
            let cursor = |(approval, at): &(Approval, i64)| format!("{at}.{}", approval.id);
            Page::cut(approvals, page_size(filter.limit), cursor)
                .try_map(|(approval, _)| Ok(approval))
        })
    }

    /// The one whose answer an exec waits for.
    pub fn pending_for_exec(&self, space: &SpaceId, exec: &ExecId) -> Result<Option<Approval>> {
        self.read(|session| approval_rows::pending_of(session, space, exec))
    }

    /// Of each exec of this owner that waits and whose request is not open to answers any more, the
    /// last request: approved, denied, expired or void, on whatever server that happened.
    pub fn approvals_decided(&self, owner: &str) -> Result<Vec<Approval>> {
        let rows = self.ask("look for answers", |session| {
            session.rows(DECIDED, values![owner], read_row)
        })?;
        rows.into_iter().map(ApprovalRow::into_approval).collect()
    }

    /// Takes an answer; see [`Store::reply_granting`] for one that also allows the kind.
    ///
    /// Refused: one to a request that is not pending any more, or has expired (which is written
    /// down then); a second one of the same person, whichever of their tokens it comes with; one of
    /// who asked, unless it comes from the prompt of the very command that asks. One no ends it. So many different people as the quorum
    /// says must say yes.
    ///
    /// `narrow` must be the first yes: whoever says yes after it knows of it or meant more. `edit`
    /// must be the only one, since a yes to the program as it was says nothing about another: a
    /// request that needs several people takes none.
    pub fn reply(&self, id: &ApprovalId, reply: Reply, now: Timestamp) -> Result<Approval> {
        self.take_reply(id, reply, None, now)
    }

    /// As [`Store::reply`], for `allow_kind`, and writes the grant with it. One of that kind which
    /// is in force in that conversation already stays as it is.
    pub fn reply_granting(
        &self,
        id: &ApprovalId,
        reply: Reply,
        grant: NewGrant,
        now: Timestamp,
    ) -> Result<Approval> {
        self.take_reply(id, reply, Some(grant), now)
    }

    fn take_reply(
        &self,
        id: &ApprovalId,
        reply: Reply,
        grant: Option<NewGrant>,
        now: Timestamp,
    ) -> Result<Approval> {
        let id = id.clone();
        self.write(move |chains| answer(chains, &id, reply, grant, now))
            .and_then(|answered| answered)
            .map_err(at(Stage::Obtain))
    }

    /// Uses an approval up. Exactly once, in time, and only for what was approved.
    pub fn use_approval(&self, id: &ApprovalId, digest: &str) -> Result<Approval> {
        let (id, digest) = (id.clone(), digest.to_owned());
        self.write(move |chains| {
            let approval = approval_rows::find(chains.session(), &id)?;
            approval_rows::spend(chains, approval, &digest)
        })
        .and_then(|spent| spent)
        .map_err(at(Stage::Obtain))
    }

    /// Ends what was not answered, or not used, in time. A bounded number, so call it again while
    /// there are any. Whoever runs the execs closes them.
    pub fn expire_approvals(&self, now: Timestamp) -> Result<Vec<Approval>> {
        let due = self.read(|session| approval_rows::overdue(session, now, 1))?;
        // Nobody is kept from writing when there is nothing to write.
        if due.is_empty() {
            return Ok(due);
        }
        self.write(move |chains| {
            let due = approval_rows::overdue(chains.session(), now, EXPIRED_MOST)?;
            due.into_iter().map(|it| expire(chains, it)).collect()
        })
        .map_err(at(Stage::Obtain))
    }

    /// The request went away. One that has ended stays as it is: look at its state.
    pub fn void_approval(&self, id: &ApprovalId, why: &str) -> Result<Approval> {
        let (id, why) = (id.clone(), why.to_owned());
        self.write(move |chains| {
            let approval = approval_rows::find(chains.session(), &id)?;
            approval_rows::void(chains, approval, &why)
        })
        .map_err(at(Stage::Obtain))
    }
}

const DECIDED: &str = "SELECT a.approval_id, a.record FROM sandbox_execs x
     JOIN approvals a ON a.exec_id = x.exec_id AND a.space_id = x.space_id
     WHERE x.owner_id = ?1 AND x.closed_seq IS NULL AND x.status = 'awaiting_approval'
         AND a.state <> 'pending'
         AND a.opened_seq = (SELECT max(b.opened_seq) FROM approvals b
             WHERE b.exec_id = x.exec_id AND b.space_id = x.space_id)
     ORDER BY a.created_at, a.approval_id";

/// The inner error comes with a change that must be kept: that time is over.
fn answer(
    chains: &mut Chains<'_>,
    id: &ApprovalId,
    reply: Reply,
    grant: Option<NewGrant>,
    now: Timestamp,
) -> Result<Result<Approval>> {
    let mut approval = approval_rows::find(chains.session(), id)?;
    if let Some(error) = settled(&approval) {
        return Err(error);
    }
    if approval.has_expired(now) {
        let approval = expire(chains, approval)?;
        return Ok(Err(expired(&approval)));
    }
    approval_rows::ensure_as_said(chains.session(), &approval)?;
    ensure_may_reply(&approval, &reply)?;
    ensure_fits(&approval, &reply, grant.as_ref())?;
    let (by, word) = (reply.by.clone(), reply.answer.as_str());
    let replied = json!({ "decision": word, "via": reply.via });
    let approves = reply.answer.approves();
    approval.replies.push(reply);
    approval.state = match (approves, approval.wanting()) {
        (false, _) => ApprovalState::Denied,
        (true, 0) => ApprovalState::Approved,
        (true, _) => ApprovalState::Pending,
    };
    approval_rows::rewrite(chains.session(), &approval)?;
    append(chains, &approval, "approval.replied", Some(&by), replied)?;
    let event = match approval.state {
        ApprovalState::Approved => "approval.approved",
        ApprovalState::Denied => "approval.denied",
        _ => return Ok(Ok(approval)),
    };
    let people: Vec<_> = approval.replies.iter().map(|it| &it.by).collect();
    let details = json!({ "people": people, "digest": approval.digest });
    append(chains, &approval, event, Some(&by), details)?;
    Happening::approval_settled(&approval).tell(chains)?;
    if let Some(grant) = grant {
        grants::insert(chains, &approval, &by, grant)?;
    }
    Ok(Ok(approval))
}

fn ensure_may_reply(approval: &Approval, reply: &Reply) -> Result<()> {
    let forbidden = |message: &str, hint: &str| {
        Err(Error::new(Code::Forbidden, Stage::Obtain, message)
            .hint(hint)
            .of_exec(approval.exec_id.clone()))
    };
    if reply.by.is_empty() {
        return Err(internal("a reply is nobody's"));
    }
    let same_user = |one: &Option<String>| one.is_some() && *one == reply.user_id;
    let is_own = reply.by == approval.requested_by || same_user(&approval.requested_user);
    // Who typed the command sits before its prompt, and an agent's user before its host, if the
    // operator lets hosts ask: there is nobody else to ask.
    if is_own && !matches!(reply.via, Via::Terminal | Via::Elicitation) {
        return forbidden(
            "nobody approves their own request",
            "let somebody else answer, with a token that is not yours; to withdraw it, cancel the exec",
        );
    }
    if reply.via == Via::Automatic && reply.answer.approves() {
        if !approval.ask.upgrades.is_empty() {
            return forbidden(
                "nothing beyond policy is approved automatically",
                "let a person answer, or ask for no more than policy gives",
            );
        }
        if approval.quorum > 1 {
            return forbidden(
                "what needs several people is not approved automatically",
                "let people answer",
            );
        }
    }
    let has_answered = |it: &&Reply| it.by == reply.by || same_user(&it.user_id);
    if let Some(earlier) = approval.replies.iter().find(has_answered) {
        let by = shown(&earlier.by);
        return Err(conflict(format!(
            "`{by}` has answered approval `{}` already{}",
            approval.id,
            match earlier.by == reply.by {
                true => "",
                false => ", and both tokens are of one user",
            }
        ))
        .hint("somebody else must answer too")
        .of_exec(approval.exec_id.clone()));
    }
    Ok(())
}

fn ensure_fits(approval: &Approval, reply: &Reply, grant: Option<&NewGrant>) -> Result<()> {
    let refuse = |message: String, hint: &str| {
        Err(Error::new(Code::InvalidArgument, Stage::Obtain, message)
            .hint(hint)
            .of_exec(approval.exec_id.clone()))
    };
    let long = |text: &str| text.chars().count() > Answer::REASON_MOST;
    if reply.answer.reason().is_some_and(long) {
        let most = Answer::REASON_MOST;
        return refuse(
            format!("the reason has more than {most} characters"),
            "say it in fewer words",
        );
    }
    let several = approval.quorum > 1;
    match (&reply.answer, grant) {
        (Answer::AllowKind { .. }, Some(grant)) => {
            if !approval.ask.upgrades.is_empty() {
                return refuse(
                    "what goes beyond policy is never allowed for a whole conversation".to_owned(),
                    "allow it once",
                );
            }
            if several {
                return refuse(
                    "what needs several people is never allowed for a whole conversation"
                        .to_owned(),
                    "allow it once",
                );
            }
            if approval.ids.conversation_id.is_none() {
                return refuse(
                    "the request belongs to no conversation".to_owned(),
                    "allow it once",
                );
            }
            if grant.kind.is_empty() {
                return Err(internal("a grant is of no kind"));
            }
        }
        (Answer::AllowKind { .. }, None) => {
            return refuse(
                "the request is of no kind that can be allowed".to_owned(),
                "allow it once",
            );
        }
        (other, Some(_)) => {
            return Err(internal(format!("`{}` makes no grant", other.as_str())));
        }
        (Answer::Narrow { overrides, .. }, None) => {
            if approval.approving().next().is_some() {
                return refuse(
                    "somebody has said yes to it as it is".to_owned(),
                    "allow it once, or deny it; only the first who says yes can narrow it",
                );
            }
            if *overrides == PartialProfile::default() {
                return refuse(
                    "`overrides` narrows nothing".to_owned(),
                    "name what it may have less of, or allow it once",
                );
            }
            // They would be kept in the clear, and more is not less.
            if !overrides.env.is_empty() {
                return refuse(
                    "`overrides` sets variables".to_owned(),
                    "leave `env` out: narrowing only takes away",
                );
            }
        }
        (Answer::Edit { .. }, None) if several => {
            return refuse(
                "what needs several people is not edited".to_owned(),
                "deny it, and let it be asked anew as it should be",
            );
        }
        (Answer::Edit { .. } | Answer::AllowOnce { .. } | Answer::Deny { .. }, None) => {}
    }
    Ok(())
}
