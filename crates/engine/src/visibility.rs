//! Who looks, and what of a space is there for them. The space is the wall that nothing passes; an
//! agent is a wall inside it, which `[agents] see` may open. This is the one place that decides it:
//! what a caller names by its id is reached through a [`Seen`], and nothing else makes one.

use std::ops::Deref;

use glovebox_model::{
    Code, Correlation, Error, Exec, Lifetime, ProjectId, Result, Role, Sandbox, SpaceId, Stage,
    Token,
};
use glovebox_policy::Sight;
use serde::{Deserialize, Serialize};

use crate::policy::ActivePolicy;

/// What workspaces are called that are one agent's own.
pub const OF_AGENT: &str = "agent-";
const OF_SESSION: &str = "session-";

/// A caller of a server, as far as its token says who it is; never what a request says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Viewer {
    space: SpaceId,
    /// None: people, and an orchestrator. Everything of the space is there for them.
    agent: Option<Bound>,
    /// Not an orchestrator either.
    is_person: bool,
}

/// What an agent's token is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Bound {
    agent: String,
    user: Option<String>,
    conversation: Option<String>,
}

impl Viewer {
    pub fn of_token(token: &Token) -> Self {
        Self {
            space: token.space_id.clone(),
            agent: token.agent().map(|agent| Bound {
                agent: agent.to_owned(),
                user: token.user_id.clone(),
                conversation: token.conversation_id.clone(),
            }),
            is_person: token.role != Role::Agent,
        }
    }

    /// The owner of the state directory, or the server itself.
    pub fn of_space(space: SpaceId) -> Self {
        Self {
            space,
            agent: None,
            is_person: true,
        }
    }

    pub(crate) fn is_person(&self) -> bool {
        self.is_person
    }

    /// The only space whose things they can name.
    pub fn space(&self) -> &SpaceId {
        &self.space
    }

    /// The one agent that they are.
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_ref().map(|it| it.agent.as_str())
    }

    pub(crate) fn is_same_agent(&self, other: &Self) -> bool {
        let agent = |it: &Self| it.agent.as_ref().map(|it| it.agent.clone());
        self.space == other.space && agent(self) == agent(other)
    }

    /// Whether it is their own, whatever else `[agents] see` shows them.
    pub(crate) fn owns(&self, ids: &Correlation) -> bool {
        self.see(Sight::Own, ids)
    }

    /// The agent of an exec, as far as it is proven for whom and in which conversation it acts.
    pub(crate) fn of_exec(exec: &Exec) -> Self {
        let (ids, vouched) = (&exec.ids, exec.vouched);
        let user = ids.user_id.clone().filter(|_| vouched.proves_user());
        let talk = ids.conversation_id.clone();
        Self {
            space: ids.space_id.clone(),
            agent: ids.agent_id.as_ref().map(|agent| Bound {
                agent: agent.clone(),
                user,
                conversation: talk.filter(|_| vouched.proves_conversation()),
            }),
            is_person: false,
        }
    }

    fn see(&self, sight: Sight, ids: &Correlation) -> bool {
        if ids.space_id != self.space {
            return false;
        }
        let Some(bound) = &self.agent else {
            return true;
        };
        let is = |own: &Option<String>, of: &Option<String>| own.is_some() && own == of;
        let fits = |own: &Option<String>, of: &Option<String>| own.is_none() || own == of;
        let is_own = ids.agent_id.as_ref() == Some(&bound.agent)
            && fits(&bound.user, &ids.user_id)
            && fits(&bound.conversation, &ids.conversation_id);
        is_own
            || match sight {
                Sight::Own => false,
                Sight::Conversation => is(&bound.conversation, &ids.conversation_id),
                Sight::User => is(&bound.user, &ids.user_id),
                Sight::Space => true,
            }
    }

    /// Only whose it is is known of a sandbox, or of a snapshot: for which user or conversation is
    /// not, and so it is never opened to one.
    fn see_agents(&self, sight: Sight, agent: Option<&str>) -> bool {
        self.agent.is_none() || sight == Sight::Space || agent.is_some() && agent == self.agent()
    }
}

/// Something that is there for who asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<T>(T);

impl<T> Seen<T> {
    /// Of what the asker has just made, or of the same thing as it is now.
    pub(crate) fn own(it: T) -> Self {
        Self(it)
    }

    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Seen<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl ActivePolicy {
    /// None where it is not there for them: to them it is as if it never was.
    pub(crate) fn seen<T>(&self, eyes: &Viewer, ids: &Correlation, it: T) -> Option<Seen<T>> {
        eyes.see(self.config().sight(), ids).then_some(Seen(it))
    }

    /// A sandbox that all share is there for all; one of a session for who made it.
    pub(crate) fn seen_sandbox(&self, eyes: &Viewer, mut row: Sandbox) -> Option<Seen<Sandbox>> {
        let sight = self.config().sight();
        let is_there = row.space_id == eyes.space
            && match row.lifetime {
                Lifetime::Shared => true,
                Lifetime::Agent => eyes.see_agents(sight, row.scope.as_deref()),
                Lifetime::Session | Lifetime::Exec => {
                    eyes.see_agents(sight, row.agent_id.as_deref())
                }
            };
        if row.lifetime == Lifetime::Shared && !eyes.see_agents(sight, None) {
            // Whose exec is in it is not told.
            row.exec_id = None;
        }
        is_there.then_some(Seen(row))
    }

    /// What people took, or what was taken before agents were told apart, is the workspace's.
    pub(crate) fn sees_snapshot(&self, eyes: &Viewer, agent: Option<&str>) -> bool {
        agent.is_none() || eyes.see_agents(self.config().sight(), agent)
    }

    /// Who sees one that people took may not remove it.
    pub(crate) fn owns_snapshot(&self, eyes: &Viewer, agent: Option<&str>) -> bool {
        eyes.see_agents(self.config().sight(), agent)
    }

    /// Workspaces are the space's, and all agents work on them; but one that is named after an agent
    /// is that agent's.
    pub(crate) fn may_work_on(&self, eyes: &Viewer, project: &ProjectId) -> bool {
        let own = || {
            let agent = eyes.agent()?;
            let sessions = sessions_of(agent);
            let is_session = project.as_str().starts_with(&sessions);
            (is_session || named_after(OF_AGENT, agent).as_ref() == Ok(project)).then_some(())
        };
        !project.as_str().starts_with(OF_AGENT)
            || eyes.agent.is_none()
            || self.config().sight() == Sight::Space
            || own().is_some()
    }

    /// Whether a workspace of this name can be theirs, be it there or not.
    pub(crate) fn ensure_may_work_on(&self, eyes: &Viewer, project: &ProjectId) -> Result<()> {
        if self.may_work_on(eyes, project) {
            return Ok(());
        }
        let message = format!("the workspace `{project}` is named after another agent");
        Err(Error::new(Code::Forbidden, Stage::Parse, message)
            .hint("use another name; those in `agent-` are one agent's each"))
    }
}

const HASH: usize = 32;

/// The workspace of an agent or a session, whose ids are free text: what is no name of a directory is
/// replaced by its hash.
pub fn named_after(prefix: &str, key: &str) -> Result<ProjectId> {
    // As long as a hash, a key could be taken for one.
    let own = (key.len() < HASH).then(|| format!("{prefix}{key}").parse().ok());
    own.flatten().map_or_else(|| hashed(prefix, key), Ok)
}

/// The workspace of a session. Sessions are each agent's own words, and so are their workspaces.
pub fn of_session(agent: Option<&str>, session: &str) -> Result<ProjectId> {
    match agent {
        Some(agent) => hashed(&sessions_of(agent), session),
        None => named_after(OF_SESSION, session),
    }
}

/// What the workspaces of all sessions of an agent begin with. Longer than the name of any agent that
/// is not hashed itself.
fn sessions_of(agent: &str) -> String {
    let hash = blake3::hash(agent.as_bytes()).to_hex();
    format!("{OF_AGENT}{OF_SESSION}{}-", &hash[..HASH / 2])
}

pub fn hashed(prefix: &str, text: &str) -> Result<ProjectId> {
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let name = format!("{prefix}{}", &hash[..HASH]).parse();
    name.map_err(|why| Error::new(Code::Internal, Stage::Parse, "a hash is no name").caused_by(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::{Role, TokenId};

    fn token(name: &str, more: impl FnOnce(&mut Token)) -> Viewer {
        let mut token = Token {
            token_id: TokenId::from_random([1; 16]),
            name: name.parse().unwrap(),
            role: Role::Agent,
            space_id: SpaceId::local(),
            scopes: [].into(),
            user_id: None,
            agent_id: None,
            conversation_id: None,
            created_at: jiff::Timestamp::UNIX_EPOCH,
            expires_at: None,
            revoked_at: None,
        };
        more(&mut token);
        Viewer::of_token(&token)
    }

    #[test]
    fn an_agent_sees_its_own_and_what_the_setting_opens() {
        let some = |text: &str| Some(text.to_owned());
        let own = token("ann", |_| {});
        let bound = token("x", |it| it.agent_id = some("ann"));
        let of_user = token("x", |it| {
            (it.agent_id, it.user_id) = (some("ann"), some("u"));
        });
        let in_talk = token("x", |it| {
            (it.agent_id, it.conversation_id) = (some("ann"), some("c"));
        });
        let person = token("p", |it| it.role = Role::Approver);
        let bound_person = token("p", |it| {
            (it.role, it.agent_id) = (Role::Admin, some("ann"));
        });
        let all = token("o", |it| it.agent_id = some(Token::EVERY_AGENT));
        let elsewhere = token("p", |it| {
            (it.role, it.space_id) = (Role::Admin, "other".parse().unwrap());
        });
        use Sight::{Conversation, Own, Space, User};
        let every: &[Sight] = &Sight::ALL;
        // Whose it is, for whom and where; and who sees it under which settings.
        for (agent, user, talk, seen) in [
            ("ann", "u", "c", [every, every, every, every, every]),
            ("ann", "v", "d", [every, every, &[Space], &[Space], every]),
            (
                "bob",
                "u",
                "c",
                [
                    &[Space],
                    &[Space],
                    &[User, Space],
                    &[Conversation, Space],
                    &[Space],
                ],
            ),
            (
                "bob",
                "v",
                "d",
                [&[Space], &[Space], &[Space], &[Space], &[Space]],
            ),
            (
                "",
                "u",
                "c",
                [
                    &[Space],
                    &[Space],
                    &[User, Space],
                    &[Conversation, Space],
                    &[Space],
                ],
            ),
        ] {
            let ids = Correlation {
                agent_id: (!agent.is_empty()).then(|| agent.to_owned()),
                user_id: some(user),
                conversation_id: some(talk),
                ..Correlation::of_space(SpaceId::local())
            };
            let eyes = [&own, &bound, &of_user, &in_talk, &bound_person];
            for (eyes, settings) in eyes.into_iter().zip(seen) {
                for sight in [Own, Conversation, User, Space] {
                    let what = format!("{agent} {user} {talk} {eyes:?} {sight:?}");
                    assert_eq!(eyes.see(sight, &ids), settings.contains(&sight), "{what}");
                }
            }
            assert!(person.see(Own, &ids) && all.see(Own, &ids));
            assert!(!elsewhere.see(Space, &ids));
        }
    }

    #[test]
    fn every_agent_has_a_workspace_of_its_own() {
        assert_eq!(named_after("agent-", "ann").unwrap().as_str(), "agent-ann");
        let keys = [
            "ann/../x",
            "a b",
            "x".repeat(400).as_str(),
            "scratch",
            "cwd-1",
            "",
        ]
        .map(|key| named_after("agent-", key).unwrap());
        assert!(keys.iter().all(|it| it.as_str().starts_with("agent-")));
        let distinct: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        let hash = named_after("agent-", "a b").unwrap();
        let taken = hash.as_str().strip_prefix("agent-").unwrap();
        assert_ne!(named_after("agent-", taken).unwrap(), hash);
    }
}
