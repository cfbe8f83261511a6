//! `glovebox token`.

use glovebox_api::{Id, TokenRequest};
use glovebox_model::{Code, Error, Result, Stage, Token};
use glovebox_store::TokenFilter;
use jiff::Timestamp;

use crate::args::{
    Global, TokenCommand, TokenCreateArgs, TokenInfoArgs, TokenLsArgs, TokenRmArgs, TokenVerb,
};
use crate::context::Context;
use crate::exit::Exit;
use crate::human::{age, time};
use crate::paint::{Paint, Tone};
use crate::render::{self, one_line};
use crate::table::{Cell, Table};
use crate::{expiry, stdout, token_admin};

pub(crate) fn run(global: &Global, command: TokenCommand) -> Result<Exit> {
    let context = Context::new(global);
    match command.verb {
        TokenVerb::Create(args) => {
            let request = request(args, Timestamp::now())?;
            create(global, &context, &request)
        }
        TokenVerb::Ls(args) => list(global, &context, args),
        TokenVerb::Info(TokenInfoArgs { id }) => show(global, &token_admin::token(&context, &id)?),
        TokenVerb::Rm(TokenRmArgs { id }) => {
            let token = token_admin::revoke_token(&context, &id)?;
            if global.json {
                stdout::json(&token)?;
            } else if !global.quiet {
                render::note(&format!("`{id}` (`{}`) is revoked", token.name));
            }
            Ok(Exit::SUCCESS)
        }
    }
}

fn request(args: TokenCreateArgs, now: Timestamp) -> Result<TokenRequest> {
    let invalid = |message: String| Error::new(Code::InvalidArgument, Stage::Parse, message);
    let most = args.role.scopes();
    let scopes = match args.scope.is_empty() {
        true => most.clone(),
        false => args.scope.into_iter().collect(),
    };
    if let Some(scope) = scopes.difference(&most).next() {
        let names: Vec<&str> = most.iter().map(|scope| scope.as_str()).collect();
        let message = format!("the role `{}` does not have `{scope}`", args.role);
        return Err(invalid(message).hint(format!("it has: {}", names.join(", "))));
    }
    Ok(TokenRequest {
        name: args.name,
        role: args.role,
        space_id: Some(args.space),
        scopes: Some(scopes),
        user_id: args.user_id.map(Id),
        agent_id: args.agent_id.map(Id),
        conversation_id: args.conversation_id.map(Id),
        expires_at: expiry::end(args.expires, now)?,
    })
}

fn create(global: &Global, context: &Context<'_>, request: &TokenRequest) -> Result<Exit> {
    let new = token_admin::create_token(context, request)?;
    if global.json {
        stdout::json(&new)?;
        return Ok(Exit::SUCCESS);
    }
    stdout::text(&format!("{}\n", new.secret))?;
    if !global.quiet {
        let Token {
            token_id,
            role,
            space_id,
            ..
        } = &new.token;
        render::note(&format!(
            "`{token_id}`: role `{role}` in the space `{space_id}`; its secret is shown this once"
        ));
    }
    Ok(Exit::SUCCESS)
}

fn list(global: &Global, context: &Context<'_>, args: TokenLsArgs) -> Result<Exit> {
    let filter = TokenFilter {
        space: args.space,
        include_unusable: args.all,
        limit: usize::from(args.limit),
        cursor: args.cursor,
    };
    let page = token_admin::tokens(context, &filter)?;
    if global.json {
        stdout::json(&page)?;
    } else if global.quiet {
        let ids: String = page
            .items
            .iter()
            .map(|it| format!("{}\n", it.token_id))
            .collect();
        stdout::text(&ids)?;
    } else if page.items.is_empty() {
        render::note("there is no token; `glovebox token create` makes one");
    } else {
        let table = table(&page.items, Timestamp::now());
        stdout::text(&table.text(Paint::on(&std::io::stdout())))?;
        if let Some(cursor) = page.next {
            render::note(&format!("there are more: `--cursor {cursor}`"));
        }
    }
    Ok(Exit::SUCCESS)
}

fn table(tokens: &[Token], now: Timestamp) -> Table<6> {
    let mut table = Table::new(["ID", "NAME", "ROLE", "SPACE", "VALID", "AGE"]);
    for token in tokens {
        let tone = if token.is_usable(now) {
            Tone::Good
        } else {
            Tone::Bad
        };
        table.push([
            Cell::from(token.token_id.as_str()),
            Cell::from(token.name.as_str()),
            Cell::from(token.role.as_str()),
            Cell::from(token.space_id.as_str()),
            Cell::toned(tone, &validity(token, now)),
            Cell::from(age(token.created_at, now)),
        ]);
    }
    table
}

fn validity(token: &Token, now: Timestamp) -> String {
    match (token.revoked_at, token.expires_at) {
        (Some(_), _) => "revoked".to_owned(),
        (None, Some(end)) if end <= now => "expired".to_owned(),
        (None, Some(end)) => format!("for {}", age(now, end)),
        (None, None) => "always".to_owned(),
    }
}

fn show(global: &Global, token: &Token) -> Result<Exit> {
    if global.json {
        stdout::json(token)?;
        return Ok(Exit::SUCCESS);
    }
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let lines = [
        ("token", Some(token.token_id.to_string())),
        ("name", Some(token.name.to_string())),
        ("role", Some(token.role.to_string())),
        ("space", Some(token.space_id.to_string())),
        ("scopes", Some(scopes.join(", "))),
        ("user", token.user_id.clone()),
        ("agent", token.agent_id.clone()),
        ("conversation", token.conversation_id.clone()),
        ("created", Some(time(token.created_at))),
        ("expires", token.expires_at.map(time)),
        ("revoked", token.revoked_at.map(time)),
    ];
    let line = |(name, value): (&str, Option<String>)| {
        value.map(|value| format!("{name:<11} {}\n", one_line(&value)))
    };
    stdout::text(&lines.into_iter().filter_map(line).collect::<String>())?;
    Ok(Exit::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use glovebox_model::{Scope, SpaceId, TokenId};

    fn parsed(line: &str) -> Result<TokenRequest> {
        let words = "glovebox token create --space team --name ci".split(' ');
        let cli = Cli::try_parse_from(words.chain(line.split(' '))).unwrap();
        let Command::Token(TokenCommand {
            verb: TokenVerb::Create(args),
        }) = cli.command
        else {
            panic!("another command");
        };
        request(args, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_token_has_its_roles_scopes_or_fewer() {
        let request = parsed("--role agent").unwrap();
        assert_eq!(request.scopes, Some(glovebox_model::Role::Agent.scopes()));
        assert_eq!(request.expires_at, None);
        let request = parsed("--role auditor --scope audit:read --expires 1d").unwrap();
        assert_eq!(request.scopes, Some([Scope::AuditRead].into()));
        assert_eq!(
            request.expires_at,
            Some(Timestamp::from_second(86_400).unwrap())
        );
        let error = parsed("--role agent --scope audit:read").unwrap_err();
        assert!(error.message.contains("`audit:read`"), "{error}");
    }

    #[test]
    fn a_row_says_how_long_it_is_valid() {
        let now = Timestamp::from_second(1000).unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut token = Token {
            token_id: TokenId::from_random([1; 16]),
            name: "ci".parse().unwrap(),
            role: glovebox_model::Role::Agent,
            space_id: SpaceId::local(),
            scopes: [].into(),
            user_id: None,
            agent_id: None,
            conversation_id: None,
            created_at: at(940),
            expires_at: None,
            revoked_at: None,
        };
        assert_eq!(validity(&token, now), "always");
        token.expires_at = Some(at(1030));
        assert_eq!(validity(&token, now), "for 30s");
        token.expires_at = Some(at(1000));
        assert_eq!(validity(&token, now), "expired");
        token.revoked_at = Some(at(999));
        assert_eq!(validity(&token, now), "revoked");
        let shown = table(&[token], now).text(Paint::Plain);
        assert!(
            shown.ends_with("ci    agent  local  revoked  1m\n"),
            "{shown}"
        );
    }
}
