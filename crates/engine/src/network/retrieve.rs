//! Reading the web on somebody's behalf: whether policy lets them, what of it is written down. How it
//! is read safely is `egress`'s.

use std::sync::Arc;

use glovebox_egress::client::HopPolicy;
use glovebox_egress::retrieve::{
    JsonLimits, Limiter, LimiterRules, RetrieveLimits, RetrieveRequest, Retrieved, Retriever,
    suspected_secret,
};
use glovebox_egress::{Host, PrivateTargets, Refusal, RefusalCode, vet_url};
use glovebox_model::{
    Code, Correlation, Error, HostPort, IdError, Lifetime, NetworkMode, OnExceed, PartialProfile,
    Permit, Placement, Profile, Result, Ruling, Stage, Vouched,
};
use glovebox_policy::{Action, Config, DecisionContext, Endpoint, decide_action};
use glovebox_store::Actor;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::approvals::refused;
use crate::network::EgressRuntime;
use crate::network::Network;
use crate::policy::ActivePolicy;
use crate::private_key::private_key;
use crate::sandboxes::{SandboxRequest, nothing_yet};

/// The tool that tool policy and rules know it by.
const TOOL: &str = "retrieve";

impl EgressRuntime {
    /// With the operator's limits; whoever fetches too much is told so here, for all callers of this
    /// process.
    fn retriever(&self) -> Result<&Retriever> {
        if let Some(retriever) = self.retriever.get() {
            return Ok(retriever);
        }
        let settings = &self.settings().retrieval;
        let limits = RetrieveLimits::default();
        let json = JsonLimits {
            depth: amount(u64::from(settings.json_depth)),
            nodes: amount(settings.json_nodes),
            ..limits.json
        };
        let ports = settings.ports.iter().map(ToString::to_string);
        let retriever = Retriever {
            limits: RetrieveLimits {
                bytes: amount(settings.max_bytes.get()),
                time: settings.timeout.duration(),
                redirects: amount(u64::from(settings.redirects)),
                json,
                ..limits
            },
            ports: PrivateTargets::parse(ports).map_err(|refusal| {
                let message = format!("`[network.retrieval] ports`: {}", refusal.message);
                Error::new(Code::InvalidConfig, Stage::Open, message)
            })?,
            domains: (!settings.allow.is_empty()).then(|| settings.allow.iter().cloned().collect()),
            limiter: Some(Arc::new(Limiter::new(LimiterRules {
                at_once: amount(u64::from(settings.concurrent_total)),
                at_once_of_a_caller: amount(u64::from(settings.concurrent)),
                in_a_minute: settings.per_minute,
            }))),
            ..Retriever::new(self.client()?.clone())
        };
        Ok(self.retriever.get_or_init(|| retriever))
    }
}

fn amount(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl Network {
    /// Reads a page for somebody. What the far side said, or why it was not asked, is an answer too;
    /// an error is what policy or the rate stands against. Either is written into the ledger, and that
    /// it is about to be asked before that.
    pub fn retrieve(
        &self,
        (ids, vouched): (&Correlation, Vouched),
        by: Option<&Actor>,
        request: RetrieveRequest,
    ) -> Result<Retrieved> {
        let url = request.url.clone();
        let known = vet_url(&url, &self.instance.policy.reachable()?).ok();
        let host = known
            .as_ref()
            .map(|it| format!("{}:{}", it.host(), it.port()));
        let done = self.retrieve_allowed((ids, vouched), by, host.as_deref(), request);
        let (outcome, told) = match &done {
            Ok(retrieved) => {
                let code = retrieved.error_code.map_or("ok", RefusalCode::as_str);
                (code, serde_json::to_value(facts(retrieved)))
            }
            Err(error) => (
                error.code.as_str(),
                Ok(serde_json::json!({ "blocked_reason": error.code })),
            ),
        };
        let mut details = told.unwrap_or_default();
        let is_secret = outcome == RefusalCode::SuspectedSecretInUrl.as_str();
        let told = host.as_deref().filter(|_| !is_secret);
        self.describe(ids, &url, told, &mut details)?;
        // What cannot be written down is not told either.
        self.instance
            .store()?
            .note_retrieval(ids, by, outcome, details)?;
        done
    }

    /// What the ledger has of every request, whatever came of it.
    fn describe(
        &self,
        ids: &Correlation,
        url: &str,
        host: Option<&str>,
        details: &mut serde_json::Value,
    ) -> Result<()> {
        details["requested_host"] = serde_json::json!(host);
        details["requested_url_hmac"] = serde_json::json!(self.url_hmac(url)?);
        self.secrets.masks(&ids.space_id)?.redact_json(details);
        Ok(())
    }

    fn retrieve_allowed(
        &self,
        (ids, vouched): (&Correlation, Vouched),
        by: Option<&Actor>,
        host: Option<&str>,
        request: RetrieveRequest,
    ) -> Result<Retrieved> {
        let profile = self.instance.policy.profile_of(ids)?;
        if profile.network < NetworkMode::Retrieval {
            return Err(closed());
        }
        if let Some(host) = host {
            let ruling = rule(self.instance.config(), ids, profile.approval, host);
            match ruling.permit {
                Permit::Allow => {}
                Permit::Deny => return Err(refused(&ruling)),
                Permit::Ask => return Err(asks(host, &ruling)),
            }
        }
        let masks = self.secrets.masks_for(ids, vouched, &[])?;
        if let Some(name) = masks.find(request.url.as_bytes()) {
            return Ok(Retrieved::refusal(
                Refusal::new(
                    RefusalCode::SuspectedSecretInUrl,
                    format!("the URL holds the secret `{name}`"),
                )
                .hint("leave it out, or use a brokered secret from a sandbox"),
            ));
        }
        // What cannot be written down does not happen. A URL that looks like a secret goes nowhere, and
        // its host may be a part of it.
        if suspected_secret(&request.url).is_none() {
            let mut details = serde_json::json!({});
            self.describe(ids, &request.url, host, &mut details)?;
            self.instance.store()?.plan_retrieval(ids, by, details)?;
        }
        let outside = self.outside()?;
        let mut retriever = Retriever {
            hops: Some(Arc::new(Hops {
                config: self.instance.config().clone(),
                ids: ids.clone(),
                profile,
            })),
            ..outside.retriever()?.clone()
        };
        retriever.client.vetter.private = self.instance.policy.retrievable()?;
        let caller = caller(ids, by);
        let mut retrieved = outside
            .runtime()
            .block_on(async { retriever.get(&caller, request).await });
        if retrieved.error_code == Some(RefusalCode::RateLimited) {
            return Err(too_often(&retrieved));
        }
        for text in [&mut retrieved.text, &mut retrieved.title] {
            *text = text.take().map(|it| masks.redact_str(&it).into_owned());
        }
        Ok(retrieved)
    }

    /// Tells the same URL from another one to whoever has the key, and nothing to others.
    fn url_hmac(&self, url: &str) -> Result<String> {
        let key = private_key(&self.instance.state().keys().join("retrieval.key"))?;
        let mut mac = Hmac::<Sha256>::new_from_slice(key.as_slice()).map_err(|error| {
            Error::new(Code::Internal, Stage::Open, "a URL cannot be hashed").caused_by(error)
        })?;
        mac.update(url.as_bytes());
        let digest = mac.finalize().into_bytes();
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl ActivePolicy {
    /// Destinations that may be named beside ports 80 and 443.
    fn reachable(&self) -> Result<PrivateTargets> {
        let network = self.config().network();
        let listed = network.retrieval.ports.iter().map(ToString::to_string);
        let ports = PrivateTargets::parse(listed).map_err(misconfigured)?;
        Ok(ports.union(&self.retrievable()?))
    }

    /// Private destinations that the operator lists for retrieval as well: what a sandbox may reach
    /// is not for everybody to read.
    fn retrievable(&self) -> Result<PrivateTargets> {
        let network = self.config().network();
        let listed = network.private.iter().filter(|it| {
            let allowed = match it {
                Endpoint::Name(name) => network.retrieval.allow.contains(name),
                Endpoint::Address(_) => false,
            };
            allowed || network.retrieval.ports.contains(*it)
        });
        PrivateTargets::parse(listed.map(ToString::to_string)).map_err(misconfigured)
    }

    /// What somebody has who wishes for nothing.
    fn profile_of(&self, ids: &Correlation) -> Result<Profile> {
        let mut call = nothing_yet(&SandboxRequest {
            ids: ids.clone(),
            lifetime: Lifetime::Exec,
            project: "usual".parse().map_err(|why: IdError| {
                Error::new(Code::Internal, Stage::Parse, why.to_string())
            })?,
            on_exceed: OnExceed::Refuse,
            overrides: PartialProfile::default(),
        });
        call.placement = Placement::Fresh;
        Ok(self.assess(call)?.profile().clone())
    }
}

fn misconfigured(refusal: Refusal) -> Error {
    Error::new(Code::InvalidConfig, Stage::Open, refusal.message)
}

/// Rules on hosts hold wherever a redirect leads.
#[derive(Debug)]
struct Hops {
    config: Config,
    ids: Correlation,
    profile: Profile,
}

impl HopPolicy for Hops {
    fn check(&self, host: &Host, port: u16) -> std::result::Result<(), Refusal> {
        let listed = |it: &HostPort| host.is_meant_by(it) && it.port() == port;
        if self.profile.network == NetworkMode::Allowlist
            && !self.profile.allow_net.iter().any(listed)
        {
            return Err(Refusal::new(
                RefusalCode::DestinationBlocked,
                format!("`{host}:{port}` is not on the list of this caller"),
            )
            .hint(format!(
                "the missing rule is `allow_net = [\"{host}:{port}\"]`"
            )));
        }
        let host = format!("{host}:{port}");
        let ruling = rule(&self.config, &self.ids, self.profile.approval, &host);
        match ruling.permit {
            Permit::Allow => Ok(()),
            Permit::Ask | Permit::Deny => Err(Refusal::new(
                RefusalCode::DestinationBlocked,
                format!("policy does not let `{host}` be read"),
            )
            .hint("`glovebox policy explain` shows the rules")),
        }
    }
}

fn rule(
    config: &Config,
    ids: &Correlation,
    mode: glovebox_model::ApprovalMode,
    host: &str,
) -> Ruling {
    let (rules, tools) = (config.rules_for(ids), config.tools_for(ids));
    let standing = DecisionContext {
        rules: &rules,
        tool: TOOL,
        tools: &tools,
        grants: &[],
        approvals: config.approvals(),
        simulate: false,
        backend: None,
        secrets: &[],
        network: config.network(),
    };
    let hosts = [host.to_owned()];
    let action = Action {
        ids,
        paths: &[],
        hosts: &hosts,
        changes: false,
        mode,
    };
    decide_action(&action, &standing)
}

/// Whose rate and places count.
fn caller(ids: &Correlation, by: Option<&Actor>) -> String {
    let user = ids.user_id.as_deref();
    let name = by.map(|it| it.name.as_str());
    format!("{} {}", ids.space_id, user.or(name).unwrap_or_default())
}

/// What the ledger keeps: no text, no title, no URL.
fn facts(it: &Retrieved) -> serde_json::Value {
    serde_json::json!({
        "status_code": it.status_code,
        "error_code": it.error_code,
        "blocked_reason": it.error.as_ref().map(|it| &it.message),
        "elapsed_ms": it.elapsed_ms,
        "bytes_read": it.bytes_read,
        "truncated": it.truncated,
        "redirects": it.redirects,
        "resolved_addresses": it.addresses.len(),
    })
}

fn closed() -> Error {
    Error::new(
        Code::PolicyDenied,
        Stage::Resolve,
        "policy gives no way to read from the network: the mode is `none`",
    )
    .hint("the operator opens it: `network = \"retrieval\"` under `[settings]`")
}

fn asks(host: &str, ruling: &Ruling) -> Error {
    let mut error = Error::new(
        Code::PolicyDenied,
        Stage::Obtain,
        format!("people have to agree before `{host}` is read, and nobody is asked here"),
    );
    error.rule = ruling.reasons.iter().find_map(|it| it.rule.clone());
    error.hint(format!(
        "a rule lets it pass: `[[rule]] decision = \"allow\" tool = \"{TOOL}\" host = \"{host}\"`"
    ))
}

fn too_often(retrieved: &Retrieved) -> Error {
    let refusal = retrieved.error.as_ref();
    let message = refusal.map_or("too much is read at once", |it| it.message.as_str());
    let mut error = Error::new(Code::RateLimited, Stage::Admit, message.to_owned());
    error.retry.allowed = true;
    error.retry.after_ms = Some(refusal.and_then(|it| it.retry_after_ms).unwrap_or(1000));
    error.hint(
        "wait and try again; `[network.retrieval]` says how much is read at once and in a minute",
    )
}
