//! `switchboard tokens`: creates, lists and revokes the tokens of clients that use the gateway over HTTP.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};
use switchboard_config::text::visible;
use switchboard_server::http::{
    CreateTokenError, DEFAULT_TOKEN, NamedTokens, NewToken, TokenInfo, TokenName,
};
use switchboard_store::{SqliteStore, StoreError, Timestamp};

use crate::cli::{CreateTokenArguments, TokensCommand};
use crate::commands::gateway::TOKENS;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Column, Table, style};
use crate::{journal, session, time, view};

pub(crate) fn run(command: &TokensCommand, context: &Context) -> Outcome {
    let runtime =
        session::runtime().map_err(|error| Failure::failed("could not start").because(error))?;
    let store = SqliteStore::new(session::store_file(context));
    let tokens = NamedTokens::new(Arc::new(store));
    runtime.block_on(async {
        match command {
            TokensCommand::Create(arguments) => create(arguments, &tokens, context).await,
            TokensCommand::List => list(&tokens, context).await,
            TokensCommand::Revoke { name } => revoke(name, &tokens, context).await,
        }
    })
}

async fn create(
    arguments: &CreateTokenArguments,
    tokens: &NamedTokens,
    context: &Context,
) -> Outcome {
    let name = name(&arguments.name)?;
    let shown = name.as_str();
    if shown == DEFAULT_TOKEN {
        return Err(
            Failure::usage("the token `default` is the one in the token file")
                .hint("choose another name; the gateway creates the file when it starts"),
        );
    }
    let mut new = NewToken::new(name.clone());
    new.profile.clone_from(&arguments.profile);
    new.expires_in = arguments.expires;
    let token = tokens.create(&new).await.map_err(|error| match error {
        CreateTokenError::Exists(_) => Failure::failed(error.to_string()).hint(format!(
            "`switchboard tokens revoke {shown}` first, or choose another name"
        )),
        CreateTokenError::Store(error) => unusable(&error),
        error => Failure::failed(error.to_string()),
    })?;
    journal::changed("create-token", shown.to_owned(), context);
    let printer = &context.printer;
    if printer.json {
        let listed = tokens.list().await.map_err(|error| unusable(&error))?;
        let info = listed.into_iter().find(|info| info.name == name);
        let mut document = info.map_or_else(|| json!({"name": shown}), |info| info_json(&info));
        document["token"] = token.expose().into();
        return printer.json(&document).map(|()| Exit::Done);
    }
    printer.data(token.expose())?;
    printer.note("this token is shown only now; clients send it as: Authorization: Bearer TOKEN");
    Ok(Exit::Done)
}

async fn list(tokens: &NamedTokens, context: &Context) -> Outcome {
    let mut listed = tokens.list().await.map_err(|error| unusable(&error))?;
    listed.splice(0..0, default_token(tokens, context).await?);
    let printer = &context.printer;
    if printer.json {
        printer.json(&listed.iter().map(info_json).collect())?;
        return Ok(Exit::Done);
    }
    if listed.is_empty() {
        printer.note("no tokens; `switchboard tokens create NAME` creates one");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        Column::key("NAME"),
        Column::new("PROFILE"),
        Column::new("CREATED").dropped(1),
        Column::new("EXPIRES"),
        Column::new("LAST USED").dropped(2),
    ]);
    let now = Timestamp::from(SystemTime::now());
    for info in &listed {
        let (how, expires) = match info.expires {
            None => (style::QUIET, "never".to_owned()),
            Some(end) if end <= now => (style::ERROR, "expired".to_owned()),
            Some(end) => (style::QUIET, time::shown(end)),
        };
        let last_used = info.last_used.map_or("never".to_owned(), time::shown);
        table.row([
            (style::NAME, info.name.as_str()),
            (
                anstyle::Style::new(),
                &visible(info.profile.as_deref().unwrap_or("all")),
            ),
            (style::QUIET, &time::shown(info.created)),
            (how, &expires),
            (style::QUIET, &last_used),
        ]);
    }
    printer.table(&table)?;
    Ok(Exit::Done)
}

async fn revoke(text: &str, tokens: &NamedTokens, context: &Context) -> Outcome {
    let name = name(text)?;
    let existed = if name.as_str() == DEFAULT_TOKEN {
        let file = context.environment.state.join(TOKENS.file);
        match fs::remove_file(&file) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => {
                let shown = view::path(&file, &context.environment.home);
                return Err(Failure::failed(format!("cannot delete {shown}")).because(error));
            }
        }
    } else {
        let revoked = tokens.revoke(&name).await;
        revoked.map_err(|error| unusable(&error))?
    };
    if !existed {
        return Err(Failure::failed(format!("unknown token `{name}`"))
            .hint("`switchboard tokens list` shows all"));
    }
    journal::changed("revoke-token", name.as_str().to_owned(), context);
    let printer = &context.printer;
    if printer.json {
        printer.json(&json!({"name": name.as_str(), "revoked": true}))?;
    }
    printer.note(format!("revoked `{name}`"));
    Ok(Exit::Done)
}

/// The token in the gateway's token file; `None` if there is no such file.
async fn default_token(
    tokens: &NamedTokens,
    context: &Context,
) -> Result<Option<TokenInfo>, Failure> {
    let file = context.environment.state.join(TOKENS.file);
    let Some(created) = fs::metadata(file).and_then(|file| file.modified()).ok() else {
        return Ok(None);
    };
    let info = tokens.default_token(created.into()).await;
    info.map(Some).map_err(|error| unusable(&error))
}

fn info_json(info: &TokenInfo) -> Value {
    json!({
        "name": info.name.as_str(),
        "profile": info.profile,
        "created": time::exact(info.created),
        "expires": info.expires.map(time::exact),
        "last_used": info.last_used.map(time::exact),
    })
}

fn name(text: &str) -> Result<TokenName, Failure> {
    TokenName::new(text).ok_or_else(|| {
        Failure::usage(format!("\"{}\" is not a valid name", visible(text)))
            .hint("use up to 64 letters, digits, dots, hyphens and underscores")
    })
}

fn unusable(error: &StoreError) -> Failure {
    let failure =
        Failure::failed("cannot use the stored tokens").because(visible(&error.to_string()));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
