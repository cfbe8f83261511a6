//! What people are asked and what they granted, through the API: at a server, or in this process.

use glovebox_api::client::Client;
use glovebox_api::{ReplyRequest, Target};
use glovebox_model::{
    Answer, Approval, ApprovalId, Code, Error, Grant, GrantId, Page, Result, Stage,
};
use glovebox_store::{ApprovalFilter, GrantFilter};

use crate::context::Context;

const APPROVALS: &str = "/v1/approvals";
const GRANTS: &str = "/v1/grants";

/// `None` where nothing was ever written.
#[derive(Debug)]
pub(crate) struct Approvals(Option<Client>);

impl Approvals {
    pub(crate) fn open(context: &Context<'_>) -> Result<Self> {
        context.store_api_if_there().map(Self)
    }

    /// The server that was named, if one was.
    pub(crate) fn server(&self) -> Option<&Client> {
        self.0.as_ref().filter(|client| client.is_remote())
    }

    /// As many as were asked for: a page ends early when what is asked is large.
    pub(crate) fn list(&self, mut filter: ApprovalFilter) -> Result<Page<Approval>> {
        let Some(client) = &self.0 else {
            return Ok(Page::empty());
        };
        let mut page = one_page(client, &filter, filter.limit)?;
        while page.items.len() < filter.limit
            && let Some(next) = page.next.take()
        {
            filter.cursor = Some(next);
            let more = one_page(client, &filter, filter.limit - page.items.len())?;
            page.items.extend(more.items);
            page.next = more.next;
        }
        Ok(page)
    }

    pub(crate) fn get(&self, id: &ApprovalId) -> Result<Approval> {
        let client = self.0.as_ref().ok_or_else(|| unknown_approval(id))?;
        found(client.get(approval(id)), || unknown_approval(id))
    }

    /// As it is afterwards.
    pub(crate) fn reply(&self, to: &Approval, answer: Answer) -> Result<Approval> {
        let id = &to.id;
        let client = self.0.as_ref().ok_or_else(|| unknown_approval(id))?;
        if !client.is_remote() {
            ensure_plain(&answer)?;
        }
        let target = approval(id).segment("reply");
        let replied = client.post(target, &ReplyRequest::of(answer)?);
        found(replied, || unknown_approval(id))
    }

    pub(crate) fn grants(&self, filter: GrantFilter) -> Result<Page<Grant>> {
        let Some(client) = &self.0 else {
            return Ok(Page::empty());
        };
        client.get(
            Target::new(GRANTS)
                .optional("conversation_id", filter.conversation_id.as_deref())
                .optional("revoked", filter.include_ended.then_some(true))
                .optional("limit", Some(filter.limit).filter(|limit| *limit > 0))
                .optional("cursor", filter.cursor.as_deref()),
        )
    }

    /// As it is afterwards.
    pub(crate) fn revoke(&self, id: &GrantId) -> Result<Grant> {
        let unknown = || unknown(&format!("grant `{id}`"), "approval grants --all");
        let client = self.0.as_ref().ok_or_else(unknown)?;
        found(
            client.delete(Target::new(GRANTS).segment(id.as_str())),
            unknown,
        )
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

fn approval(id: &ApprovalId) -> Target {
    Target::new(APPROVALS).segment(id.as_str())
}

fn one_page(client: &Client, filter: &ApprovalFilter, limit: usize) -> Result<Page<Approval>> {
    client.get(
        Target::new(APPROVALS)
            .optional("state", filter.state)
            .optional("exec_id", filter.exec.as_ref())
            .optional("conversation_id", filter.conversation_id.as_deref())
            .optional("limit", Some(limit).filter(|limit| *limit > 0))
            .optional("cursor", filter.cursor.as_deref()),
    )
}

/// One that is not there is named, with the command that lists those that are.
fn found<T>(answer: Result<T>, unknown: impl FnOnce() -> Error) -> Result<T> {
    answer.map_err(|error| match error.code {
        Code::NotFound => unknown(),
        _ => error,
    })
}

fn unknown_approval(id: &ApprovalId) -> Error {
    unknown(&format!("approval `{id}`"), "approval ls --all")
}

fn unknown(what: &str, verb: &str) -> Error {
    Error::new(Code::NotFound, Stage::Parse, format!("there is no {what}"))
        .hint(format!("list them: `glovebox {verb}`"))
}
