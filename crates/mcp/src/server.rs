//! The protocol's side: what clients ask for, answered by tools and resources.

use std::sync::Arc;

use axum::http::request::Parts;
use glovebox_model::{Code, Error, Stage};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Implementation, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, RequestStateCodec, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::watch;

use crate::answer::failure;
use crate::api::{Api, Caller};
use crate::task::Task;
use crate::tool::skill;
use crate::{catalogue, resource};

const INSTRUCTIONS: &str = include_str!("instructions.md");
/// How long a client may go by a list, in milliseconds: a skill may come or go.
const FRESH: u64 = 10_000;

/// What a connection means where its client says nothing.
#[derive(Debug, Clone)]
pub struct Setting {
    pub project: String,
    /// What the agent works on, for the model.
    pub about: String,
    /// Execs of one connection belong together under this name.
    pub conversation: Option<String>,
    /// How a person answers who is not asked here; `{id}` stands for the approval.
    pub approvals_at: String,
}

#[derive(Clone)]
pub struct Server {
    api: Arc<dyn Api>,
    setting: Arc<Setting>,
    codec: Arc<RequestStateCodec>,
    /// Calls that are under way.
    under_way: Arc<watch::Sender<usize>>,
}

/// One of them.
struct UnderWay(Arc<watch::Sender<usize>>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("setting", &self.setting)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// `key` seals what clients bring back; at least 32 bytes that nobody else has.
    pub fn new(api: Arc<dyn Api>, setting: Setting, key: &[u8]) -> Result<Self, Error> {
        let codec = RequestStateCodec::try_new(key).map_err(|error| {
            let message = format!("requests cannot be sealed: {error}");
            Error::new(Code::Internal, Stage::Open, message)
        })?;
        Ok(Self {
            api,
            setting: Arc::new(setting),
            codec: Arc::new(codec),
            under_way: Arc::new(watch::Sender::new(0)),
        })
    }

    fn begin(&self) -> UnderWay {
        self.under_way.send_modify(|count| *count += 1);
        UnderWay(Arc::clone(&self.under_way))
    }

    /// To be asked while calls are under way that are not begun any more.
    pub(crate) fn under_way(&self) -> watch::Receiver<usize> {
        self.under_way.subscribe()
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let head = context.extensions.get::<Parts>();
        self.api
            .caller(head)
            .ok_or_else(|| ErrorData::invalid_request("nobody known sent this: give a token", None))
    }

    fn task(&self, context: RequestContext<RoleServer>) -> Result<Task, ErrorData> {
        let caller = self.caller(&context)?;
        let head = context.extensions.get::<Parts>();
        let named = head.and_then(|head| project_of(head.uri.query()?));
        let session = head.and_then(session_of);
        let host = head.and_then(|it| it.headers.get("host")?.to_str().ok());
        let host = host.unwrap_or("localhost");
        Ok(Task {
            api: Arc::clone(&self.api),
            project: named.unwrap_or_else(|| self.setting.project.clone()),
            conversation: session.or_else(|| self.setting.conversation.clone()),
            approvals_at: self.setting.approvals_at.replace("{host}", host),
            codec: Arc::clone(&self.codec),
            binding: Vec::new(),
            state: None,
            responses: None,
            caller,
            context,
        })
    }
}

/// `?project=NAME` in the address that a host was given.
fn project_of(query: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == "project")?;
    let decoded = percent_encoding::percent_decode_str(value).decode_utf8();
    decoded.ok().map(|value| value.into_owned())
}

/// Clients of one session share a conversation.
fn session_of(head: &Parts) -> Option<String> {
    let session = head.headers.get("mcp-session-id")?.to_str().ok()?;
    Some(format!("mcp-{session}"))
}

fn told(error: &Error) -> ErrorData {
    let data = serde_json::to_value(error).ok();
    match error.code {
        Code::NotFound => ErrorData::resource_not_found(error.message.clone(), data),
        Code::Internal => ErrorData::internal_error(error.message.clone(), data),
        _ => ErrorData::invalid_params(error.message.clone(), data),
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        let server = Implementation::new("glovebox", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(server)
            .with_instructions(format!("{INSTRUCTIONS}\n{}\n", self.setting.about))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        catalogue::find(name).map(|it| it.described.clone())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let task = self.task(context)?;
        let tools = catalogue::list(&task).await.map_err(|it| told(&it))?;
        let mut result = ListToolsResult::with_all_items(tools);
        result.ttl_ms = Some(FRESH);
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _under_way = self.begin();
        let name = request.name.as_ref();
        let entry = catalogue::find(name);
        let skill = name.strip_prefix(skill::PREFIX);
        if entry.is_none() && skill.is_none() {
            return Err(unknown(name));
        }
        let mut task = self.task(context)?;
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        task.binding = Task::bind(&task.caller, name, &arguments);
        task.state = request.request_state;
        task.responses = request.input_responses;
        if let Err(error) = catalogue::permit(&task, name).await {
            return Ok(failure(&error).into());
        }
        Ok(match (entry, skill) {
            (Some(entry), _) => entry.run(arguments, &task).await,
            (None, Some(id)) => skill::call(id, arguments, &task).await,
            (None, None) => return Err(unknown(name)),
        })
    }

    // What is not announced is not answered: the SDK would answer with nothing.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let task = self.task(context)?;
        let resources = resource::list(&task).await.map_err(|it| told(&it))?;
        let mut result = ListResourcesResult::with_all_items(resources);
        result.ttl_ms = Some(0);
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.caller(&context)?;
        Ok(ListResourceTemplatesResult::with_all_items(
            resource::templates(),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let task = self.task(context)?;
        let read = resource::read(&task, &request.uri).await;
        read.map(ReadResourceResponse::Complete)
            .map_err(|it| told(&it))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unread(request))
    }
}

/// A request that the SDK could not read: it takes one of ours for a custom one when its parameters
/// are wrong, and we have no custom ones. Lists need none, and what is no request at all it refuses
/// itself.
fn unread(request: CustomRequest) -> ErrorData {
    let (takes, why) = match request.method.as_str() {
        "tools/call" => (
            "`name`, the name of a tool, and `arguments`, an object",
            request.params_as::<CallToolRequestParams>().err(),
        ),
        "resources/read" => (
            "`uri`, the address of a resource",
            request.params_as::<ReadResourceRequestParams>().err(),
        ),
        _ => return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None),
    };
    let mut message = format!("`{}` takes {takes}", request.method);
    if let Some(why) = why {
        // It may repeat what was sent.
        let why: String = why.to_string().chars().take(200).collect();
        message.push_str(&format!(": {why}"));
    }
    ErrorData::invalid_params(message, None)
}

fn unknown(name: &str) -> ErrorData {
    let shown: String = name.chars().take(100).collect();
    let mut message = format!("there is no tool `{shown}`");
    if let Some(nearest) = catalogue::nearest(name) {
        message.push_str(&format!("; did you mean `{nearest}`?"));
    }
    ErrorData::invalid_params(message, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_names_a_project() {
        assert_eq!(project_of("project=demo").as_deref(), Some("demo"));
        assert_eq!(project_of("a=b&project=a%2Fb").as_deref(), Some("a/b"));
        assert_eq!(project_of("projects=demo"), None);
        assert_eq!(project_of("project=%ff"), None);
    }
}
