"""The agent: it looks at the account, pays the rent, and mails a receipt."""

from datetime import timedelta

import runner
import runner.testing
from tests.testing.bank.bank import Bank


def clerk(bank: Bank) -> runner.Agent:
    """The agent at this bank."""

    @runner.tool(effect="reads")
    def statement() -> list[tuple[str, int]]:
        """All transfers so far: payee and cents."""
        return [(entry["payee"], entry["cents"]) for entry in bank.transfers()]

    @runner.tool(effect="keyed", key_ttl=timedelta(hours=24), once_per=("payee",))
    def transfer(payee: str, cents: int, call: runner.Call) -> str:
        """Transfer money to a payee."""
        return f"transfer {bank.transfer(payee, cents, call.key)}"

    @runner.tool
    def mail_receipt(addressee: str, text: str, call: runner.Call) -> str:
        """Mail a receipt."""
        bank.send(addressee, text, call.key)
        return f"a letter to {addressee}"

    @mail_receipt.lookup(visible_within=30)
    def was_mailed(call: runner.Call) -> runner.Found | runner.Missing:
        to = call.arguments["addressee"]
        return runner.Found(f"a letter to {to}") if bank.was_sent(call.key) else runner.Missing()

    model = runner.testing.ScriptedModel(
        [
            runner.testing.tool_calls(("statement", {})),
            runner.testing.tool_calls(("transfer", {"payee": "landlord", "cents": 90_000})),
            runner.testing.tool_calls(
                ("statement", {}), ("mail_receipt", {"addressee": "landlord", "text": "The rent for May is paid."})
            ),
            "The rent is paid, and the landlord has a receipt.",
        ]
    )
    return runner.Agent(model=model, tools=[statement, transfer, mail_receipt], name="clerk")
