//! Expands the variables in all texts of an entry.

use super::{Field, RootsEntry, ServerEntry};
use crate::expand::{ExpandError, Variables, expand};

impl ServerEntry {
    pub(crate) fn has_references(&self) -> bool {
        // Separate from `expanded`, which needs a copy: most entries have no references.
        let has = |text: &str| text.contains("${");
        let option = |text: &Option<String>| text.as_deref().is_some_and(has);
        let list = |texts: &[String]| texts.iter().any(|text| has(text));
        option(&self.command)
            || list(&self.args)
            || self
                .env
                .iter()
                .chain(&self.headers)
                .any(|(_, value)| has(value.expose()))
            || option(&self.cwd)
            || option(&self.url)
            || list(&self.headers_helper)
            || list(&self.env_vars)
            || list(&self.enabled_tools)
            || list(&self.disabled_tools)
            || option(&self.bearer_token_env_var)
            || option(&self.ca_file)
            || matches!(&self.roots, Some(RootsEntry::Folders(folders)) if list(folders))
            || self.oauth.is_some()
    }

    /// Replaces every reference; the errors are those that could not be resolved.
    pub(crate) fn expanded(
        &self,
        variables: &Variables<'_>,
    ) -> Result<Self, Vec<(Field, ExpandError)>> {
        let mut entry = self.clone();
        let mut errors = Vec::new();
        let mut each = |field: Field, text: &mut String| match expand(text, variables) {
            Ok(std::borrow::Cow::Borrowed(_)) => {}
            Ok(std::borrow::Cow::Owned(expanded)) => *text = expanded,
            Err(error) => errors.push((field, error)),
        };
        for (field, texts) in [
            (Field::Args, &mut entry.args),
            (Field::EnvVars, &mut entry.env_vars),
            (Field::HeadersHelper, &mut entry.headers_helper),
            (Field::EnabledTools, &mut entry.enabled_tools),
            (Field::DisabledTools, &mut entry.disabled_tools),
        ] {
            for text in texts {
                each(field, text);
            }
        }
        if let Some(RootsEntry::Folders(folders)) = &mut entry.roots {
            for folder in folders {
                each(Field::Roots, folder);
            }
        }
        for (field, text) in [
            (Field::Command, &mut entry.command),
            (Field::Cwd, &mut entry.cwd),
            (Field::Url, &mut entry.url),
            (Field::BearerTokenEnvVar, &mut entry.bearer_token_env_var),
            (Field::CaFile, &mut entry.ca_file),
        ] {
            if let Some(text) = text {
                each(field, text);
            }
        }
        for (field, pairs) in [
            (Field::Env, &mut entry.env),
            (Field::Headers, &mut entry.headers),
        ] {
            for (_, secret) in pairs {
                secret.change(|text| each(field, text));
            }
        }
        if let Some(oauth) = &mut entry.oauth {
            let texts = [
                &mut oauth.client_id,
                &mut oauth.client_secret_env_var,
                &mut oauth.issuer,
                &mut oauth.metadata_url,
                &mut oauth.resource,
                &mut oauth.redirect_uri,
                &mut oauth.private_key_file,
                &mut oauth.private_key_env_var,
                &mut oauth.key_id,
                &mut oauth.client_metadata_url,
                &mut oauth.idp_token_endpoint,
                &mut oauth.idp_client_id,
                &mut oauth.idp_client_secret_env_var,
                &mut oauth.assertion_file,
                &mut oauth.assertion_env_var,
            ];
            for text in texts.into_iter().flatten().chain(&mut oauth.scopes) {
                each(Field::OAuth, text);
            }
            if let Some(secret) = &mut oauth.client_secret {
                secret.change(|text| each(Field::OAuth, text));
            }
        }
        if errors.is_empty() {
            Ok(entry)
        } else {
            Err(errors)
        }
    }
}
