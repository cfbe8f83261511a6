//! The API as the server itself describes it: tests that go through all of it read it here, so that
//! a route nobody thought of is a test that fails.

use serde_json::Value;

use crate::Server;

#[derive(Debug, Clone)]
pub struct Api(Vec<Operation>);

#[derive(Debug, Clone)]
pub struct Operation {
    /// In capitals.
    pub method: String,
    pub path: String,
    /// What a token needs; `None` for a route that is open to everybody.
    pub scope: Option<String>,
    /// For an admin of the space `local` alone.
    pub operator: bool,
    /// The names of its parameters in the query.
    pub query: Vec<String>,
    /// The name of its body's schema, or its media type.
    pub body: Option<String>,
    /// Those that are described.
    pub statuses: Vec<u16>,
}

impl Api {
    /// # Panics
    /// When the description lacks what every operation must say.
    pub fn of(server: &Server) -> Self {
        let document = server.nobody().get("/openapi.json").json();
        let mut operations = Vec::new();
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for (method, described) in methods.as_object().expect("methods") {
                operations.push(Operation::read(path, method, described));
            }
        }
        assert!(!operations.is_empty(), "nothing is described");
        Self(operations)
    }

    pub fn operations(&self) -> &[Operation] {
        &self.0
    }

    /// Every path once, with its methods.
    pub fn paths(&self) -> Vec<(&str, Vec<&str>)> {
        let mut paths: Vec<(&str, Vec<&str>)> = Vec::new();
        for operation in &self.0 {
            match paths.iter_mut().find(|(path, _)| *path == operation.path) {
                Some((_, methods)) => methods.push(&operation.method),
                None => paths.push((&operation.path, vec![&operation.method])),
            }
        }
        paths
    }
}

impl Operation {
    fn read(path: &str, method: &str, described: &Value) -> Self {
        let secured = described.get("security").is_some();
        let scope = described["x-scope"].as_str().map(str::to_owned);
        assert_eq!(
            secured,
            scope.is_some(),
            "{method} {path} does not say what a token needs"
        );
        let parameters = described["parameters"].as_array().into_iter().flatten();
        Self {
            method: method.to_uppercase(),
            path: path.to_owned(),
            scope,
            operator: described["x-operator"] == true,
            query: parameters
                .filter(|it| it["in"] == "query")
                .filter_map(|it| it["name"].as_str().map(str::to_owned))
                .collect(),
            body: body(&described["requestBody"]["content"]),
            statuses: described["responses"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(status, _)| status.parse().expect("a status"))
                .collect(),
        }
    }

    pub fn is_mutating(&self) -> bool {
        self.method != "GET"
    }
}

fn body(content: &Value) -> Option<String> {
    let (kind, described) = content.as_object()?.iter().next()?;
    let schema = described["schema"]["$ref"].as_str();
    let name = schema.and_then(|it| it.rsplit('/').next());
    Some(name.unwrap_or(kind).to_owned())
}
