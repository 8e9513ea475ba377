//! Retries: the policy travels with the call, and workers make the tries. `cargo run --example 11_retries`
//!
//! The bank takes the money and its answer is lost, twice. All tries have one key, so it is paid once.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::{Runtime, registry::ActivityRegistry};
use steadfast::{
    ActivityContext, ActivityError, Client, OrchestrationContext, OrchestrationRegistry, Policy,
};

async fn pay(ctx: OrchestrationContext, card: String) -> Result<String, String> {
    let ms = Duration::from_millis;
    let policy = Policy::tries(5).backoff(ms(20)..ms(200)).total(ms(60_000));
    let call = ctx.schedule_activity("Charge", card).retry(policy).detailed();
    call.await.map_err(|failed| {
        let tries = failed.failure.as_ref().map_or(1, |failure| failure.tries);
        format!("{failed} (tries: {tries})")
    })
}

/// A bank that does a thing once for each key.
#[derive(Default)]
struct Bank {
    charges: Mutex<BTreeMap<String, String>>,
}

impl Bank {
    fn charge(&self, key: String, card: &str) -> Result<String, ActivityError> {
        if card == "stolen" {
            return Err(ActivityError::terminal("card declined"));
        }
        let mut charges = self.charges.lock().map_err(|_| "the bank is closed")?;
        charges.entry(key).or_insert_with(|| card.to_owned());
        Ok("paid".to_owned())
    }

    fn count(&self) -> usize {
        self.charges.lock().map_or(0, |charges| charges.len())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let bank = Arc::new(Bank::default());
    let open = Arc::clone(&bank);
    let activities = ActivityRegistry::builder()
        .register_with_errors("Charge", move |ctx: ActivityContext, card: String| {
            let answer = open.charge(ctx.idempotency_key(), &card);
            async move {
                match ctx.attempt() {
                    1 | 2 if answer.is_ok() => Err("the answer of the bank is lost".into()),
                    _ => answer,
                }
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("Pay", pay).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;

    let client = Client::new(store);
    for card in ["good", "stolen"] {
        client.start_orchestration(card, "Pay", card).await?;
        let result = client.instance(card).wait::<String>().await?;
        println!("{card}: {result:?}, charges at the bank: {}", bank.count());
    }
    runtime.shutdown(None).await;
    Ok(())
}
