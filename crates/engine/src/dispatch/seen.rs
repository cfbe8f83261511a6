//! What a server's callers name, found with their own eyes: an exec, an approval, a grant, a sandbox.
//! What is not there for them is as unknown as what never was.

use glovebox_model::{
    Approval, ApprovalId, Call, ClientId, Code, Error, Exec, ExecId, Grant, Page, Placement,
    ProjectId, Result, Sandbox, Stage, WorkspaceRef,
};
use glovebox_policy::Sight;
use glovebox_store::{ApprovalFilter, ExecFilter, GrantFilter};

use super::Dispatcher;
use crate::visibility::{Seen, Viewer};

impl Dispatcher {
    /// By its id or by its caller's own.
    pub fn find(&self, eyes: &Viewer, name: &str) -> Result<Seen<Exec>> {
        let exec = match name.parse::<ExecId>() {
            Ok(id) => self.find_id(eyes, &id)?,
            Err(_) => match name.parse::<ClientId>() {
                Ok(client) => self.find_client(eyes, &client)?,
                Err(_) => None,
            },
        };
        let mut exec = exec.ok_or_else(|| unknown(name))?.into_inner();
        self.complete(&mut exec)?;
        Ok(Seen::own(exec))
    }

    fn find_id(&self, eyes: &Viewer, id: &ExecId) -> Result<Option<Seen<Exec>>> {
        match self.store()?.get(eyes.space(), id) {
            Err(error) if error.code == Code::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(exec) => {
                let ids = exec.ids.clone();
                Ok(self.engine.policy().seen(eyes, &ids, exec))
            }
        }
    }

    /// Several agents may have used the same words. An agent means its own; anybody else has to say
    /// whose, since what one agent chose must not lead people to what they did not look at.
    fn find_client(&self, eyes: &Viewer, client: &ClientId) -> Result<Option<Seen<Exec>>> {
        let mut others = Vec::new();
        for id in self.store()?.find_client(eyes.space(), client)? {
            let Some(exec) = self.find_id(eyes, &id)? else {
                continue;
            };
            if eyes.agent().is_some() && exec.ids.agent_id.as_deref() == eyes.agent() {
                return Ok(Some(exec));
            }
            others.push(exec);
        }
        match others.len() {
            0 | 1 => Ok(others.pop()),
            _ => Err(ambiguous(client, others.iter().map(|it| &it.exec_id))),
        }
    }

    /// The newest first. A page may be short, or empty, and still lead on: what is not there for
    /// them is left out of it.
    pub fn execs(&self, eyes: &Viewer, filter: &ExecFilter) -> Result<Page<Exec>> {
        let mut filter = filter.clone();
        if self.engine.config().sight() == Sight::Own {
            filter.agent_id = eyes.agent().map(str::to_owned);
        }
        let page = self.store()?.list(eyes.space(), &filter)?;
        let mut items = Vec::new();
        for exec in page.items {
            let ids = exec.ids.clone();
            if let Some(mut exec) = self
                .engine
                .policy()
                .seen(eyes, &ids, exec)
                .map(Seen::into_inner)
            {
                self.complete(&mut exec)?;
                items.push(exec);
            }
        }
        Ok(Page {
            items,
            next: page.next,
        })
    }

    /// What is known of an exec now and is not in its row.
    fn complete(&self, exec: &mut Exec) -> Result<()> {
        self.place_in_queue(exec);
        // A server takes over by itself what dead processes left.
        if self.spawner.is_none() {
            exec.abandoned = self.store()?.is_abandoned(self.state(), exec)?;
        }
        Ok(())
    }

    pub fn approval(&self, eyes: &Viewer, id: &ApprovalId) -> Result<Seen<Approval>> {
        let approval = self.store()?.approval(Some(eyes.space()), id)?;
        let ids = approval.ids.clone();
        let seen = self.engine.policy().seen(eyes, &ids, approval);
        seen.ok_or_else(|| {
            let message = format!("there is no approval `{id}`");
            Error::new(Code::NotFound, Stage::Parse, message)
        })
    }

    /// As [`Dispatcher::execs`].
    pub fn approvals(&self, eyes: &Viewer, filter: &ApprovalFilter) -> Result<Page<Approval>> {
        let filter = ApprovalFilter {
            space: Some(eyes.space().clone()),
            ..filter.clone()
        };
        let page = self.store()?.approvals(&filter)?;
        let items = page.items.into_iter().filter_map(|approval| {
            let ids = approval.ids.clone();
            let seen = self.engine.policy().seen(eyes, &ids, approval);
            seen.map(Seen::into_inner)
        });
        Ok(Page {
            items: items.collect(),
            next: page.next,
        })
    }

    /// A grant is there for who sees the approval that it was made by.
    pub fn grants(&self, eyes: &Viewer, filter: &GrantFilter) -> Result<Page<Grant>> {
        let filter = GrantFilter {
            space: Some(eyes.space().clone()),
            ..filter.clone()
        };
        let page = self.store()?.grants(&filter)?;
        if eyes.agent().is_none() {
            return Ok(page);
        }
        let mut items = Vec::new();
        for grant in page.items {
            match self.approval(eyes, &grant.approval_id) {
                Ok(_) => items.push(grant),
                Err(error) if error.code == Code::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Page {
            items,
            next: page.next,
        })
    }

    /// The rows that are there for them, as they are now.
    pub fn sandboxes(&self, eyes: &Viewer) -> Result<Vec<Sandbox>> {
        let rows = self.engine.registry.list(eyes.space())?.into_iter();
        let seen = rows.filter_map(|row| self.engine.policy().seen_sandbox(eyes, row));
        Ok(seen.map(Seen::into_inner).collect())
    }

    /// The row of one, by its id or its name. No container engine is asked.
    pub fn find_sandbox(&self, eyes: &Viewer, name: &str) -> Result<Seen<Sandbox>> {
        let row = match self.store()?.sandbox(eyes.space(), name) {
            Err(error) if error.code == Code::NotFound => return Err(no_sandbox()),
            found => found?,
        };
        let seen = self.engine.policy().seen_sandbox(eyes, row);
        seen.ok_or_else(no_sandbox)
    }

    /// Everything that a call names is there for who makes it: the sandbox that it enters, the exec
    /// that it stands on, and the workspace.
    pub(super) fn may_name(&self, eyes: &Viewer, call: &Call) -> Result<()> {
        if let Placement::Named(name) = &call.placement {
            self.find_sandbox(eyes, name)?;
        }
        if let Some(over) = &call.over {
            self.find(eyes, over.as_str())?;
        }
        match &call.workspace {
            WorkspaceRef::Project(project) => self.may_work_on(eyes, project),
            WorkspaceRef::Scratch | WorkspaceRef::Adopted(_) => Ok(()),
        }
    }

    /// Whether a workspace of this name can be theirs, be it there or not.
    pub fn may_work_on(&self, eyes: &Viewer, project: &ProjectId) -> Result<()> {
        self.engine.policy().ensure_may_work_on(eyes, project)
    }
}

/// Execs that are named in a refusal.
const NAMED: usize = 10;

/// Several execs are called so.
fn ambiguous<'a>(client: &ClientId, execs: impl Iterator<Item = &'a ExecId>) -> Error {
    let named: Vec<String> = execs.take(NAMED).map(|it| format!("`{it}`")).collect();
    let message = format!(
        "several agents call an exec `{client}`: {}",
        named.join(", ")
    );
    Error::new(Code::Conflict, Stage::Parse, message).hint("name the one that is meant by its id")
}

/// The same words for an id that never was, one of another space or agent, and one that is no id at
/// all.
fn unknown(name: &str) -> Error {
    let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    Error::new(
        Code::NotFound,
        Stage::Parse,
        format!("there is no exec `{shown}`"),
    )
    .hint("`GET /v1/execs` lists those that are there for you")
}

pub(super) fn no_sandbox() -> Error {
    Error::new(Code::NotFound, Stage::Parse, "there is no such sandbox")
        .hint("`GET /v1/sandboxes` lists those that are there for the token")
}
