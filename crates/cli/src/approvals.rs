//! What people are asked and what they granted: in the state directory, or at a server.

use glovebox_model::{
    Answer, Approval, ApprovalId, Code, Error, Grant, GrantId, Page, Reply, Result, SpaceId, Stage,
    Via,
};
use glovebox_store::{Actor, ApprovalFilter, GrantFilter, Store};
use jiff::Timestamp;

use crate::context::{self, Context};
use glovebox_api::client::Client;
use glovebox_api::{ReplyRequest, Target};

const APPROVALS: &str = "/v1/approvals";
const GRANTS: &str = "/v1/grants";

#[derive(Debug)]
pub(crate) enum Approvals {
    /// `None` where nothing was ever written.
    Here(Option<Box<Store>>),
    There(Box<Client>),
}

impl Approvals {
    pub(crate) fn open(context: &Context<'_>) -> Result<Self> {
        if let Some(remote) = context.server()? {
            return Ok(Self::There(Box::new(remote)));
        }
        let found = context.place()?.open_if_there()?;
        Ok(Self::Here(found.map(|(_, store)| Box::new(store))))
    }

    pub(crate) fn list(&self, mut filter: ApprovalFilter) -> Result<Page<Approval>> {
        match self {
            Self::Here(None) => Ok(Page::empty()),
            Self::Here(Some(store)) => {
                filter.space = Some(SpaceId::local());
                store.approvals(&filter)
            }
            Self::There(remote) => {
                let mut page = one_page(remote, &filter, filter.limit)?;
                // A server ends a page early when what is asked is large.
                while page.items.len() < filter.limit
                    && let Some(next) = page.next.take()
                {
                    filter.cursor = Some(next);
                    let more = one_page(remote, &filter, filter.limit - page.items.len())?;
                    page.items.extend(more.items);
                    page.next = more.next;
                }
                Ok(page)
            }
        }
    }

    pub(crate) fn get(&self, id: &ApprovalId) -> Result<Approval> {
        match self {
            Self::Here(None) => Err(unknown(&format!("approval `{id}`"), "approval ls --all")),
            Self::Here(Some(store)) => store.approval(Some(&SpaceId::local()), id),
            Self::There(remote) => remote.get(Target::new(APPROVALS).segment(id.as_str())),
        }
    }

    /// As it is afterwards.
    pub(crate) fn reply(&self, approval: &Approval, answer: Answer) -> Result<Approval> {
        let id = &approval.id;
        match self {
            Self::There(remote) => {
                let target = Target::new(APPROVALS).segment(id.as_str()).segment("reply");
                remote.post(target, &ReplyRequest::of(answer)?)
            }
            Self::Here(None) => Err(unknown(&format!("approval `{id}`"), "approval ls --all")),
            Self::Here(Some(store)) => {
                ensure_plain(&answer)?;
                let now = Timestamp::now();
                let reply = Reply {
                    by: context::user(),
                    user_id: None,
                    at: now,
                    via: Via::Cli,
                    answer,
                };
                store.reply(id, reply, now)
            }
        }
    }

    pub(crate) fn grants(&self, filter: GrantFilter) -> Result<Page<Grant>> {
        match self {
            Self::Here(None) => Ok(Page::empty()),
            Self::Here(Some(store)) => store.grants(&GrantFilter {
                space: Some(SpaceId::local()),
                ..filter
            }),
            Self::There(remote) => remote.get(
                Target::new(GRANTS)
                    .optional("conversation_id", filter.conversation_id.as_deref())
                    .optional("revoked", filter.include_ended.then_some(true))
                    .optional("limit", Some(filter.limit).filter(|limit| *limit > 0))
                    .optional("cursor", filter.cursor.as_deref()),
            ),
        }
    }

    /// As it is afterwards.
    pub(crate) fn revoke(&self, id: &GrantId) -> Result<Grant> {
        match self {
            Self::Here(None) => Err(unknown(&format!("grant `{id}`"), "approval grants --all")),
            Self::Here(Some(store)) => {
                let by = Actor {
                    token_id: None,
                    name: context::user(),
                };
                store.revoke_grant(Some(&SpaceId::local()), id, &by)
            }
            Self::There(remote) => remote.delete(Target::new(GRANTS).segment(id.as_str())),
        }
    }
}

/// What must be looked at anew is for the process that has the request.
fn ensure_plain(answer: &Answer) -> Result<()> {
    let what = match answer {
        Answer::AllowOnce { .. } | Answer::Narrow { .. } | Answer::Deny { .. } => return Ok(()),
        Answer::AllowKind { .. } => "a kind is allowed",
        Answer::Edit { .. } => "a program is put in the place of another",
    };
    Err(Error::new(
        Code::InvalidArgument,
        Stage::Parse,
        format!("{what} only where the request waits"),
    )
    .hint("answer at the prompt of the run that asks, or at its server: `--server URL`"))
}

fn one_page(remote: &Client, filter: &ApprovalFilter, limit: usize) -> Result<Page<Approval>> {
    remote.get(
        Target::new(APPROVALS)
            .optional("state", filter.state)
            .optional("exec_id", filter.exec.as_ref())
            .optional("conversation_id", filter.conversation_id.as_deref())
            .optional("limit", Some(limit).filter(|limit| *limit > 0))
            .optional("cursor", filter.cursor.as_deref()),
    )
}

fn unknown(what: &str, verb: &str) -> Error {
    Error::new(Code::NotFound, Stage::Parse, format!("there is no {what}"))
        .hint(format!("list them: `glovebox {verb}`"))
}
