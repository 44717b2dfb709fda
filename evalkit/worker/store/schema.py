"""The tables, and how a store of an older version comes up to date."""

from __future__ import annotations

from collections.abc import Sequence

from evalkit.worker.store.database import Database
from evalkit.worker.store.protocol import StoreError

#: What brings a store from version n to n + 1 stands at place n. Never change one that was released: add one.
#: ``{serial}`` is the database's own type for a growing key.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        create table task (
          seq {serial},
          id text not null unique,
          type text not null,
          orders text not null,
          status text not null,
          checklist text not null,
          continuations bigint not null,
          last_stop text,
          turns bigint not null,
          input_tokens bigint not null,
          output_tokens bigint not null,
          input_before bigint not null,
          output_before bigint not null,
          attempts bigint not null,
          idle bigint not null,
          lease bigint not null,
          worker text,
          until double precision,
          not_before double precision not null,
          state text,
          request text not null,
          echo bigint,
          resume text not null,
          word text,
          ending text,
          completion text,
          artifact text,
          created double precision not null,
          updated double precision not null,
          closed double precision
        )
        """,
        "create index task_pending on task (seq) where status = 'pending'",
        "create index task_leased on task (until) where worker is not null",
        "create index task_unreported on task (seq) where status = 'escalated' and artifact is null",
        """
        create table turn (
          task bigint not null,
          number bigint not null,
          request text not null,
          content text not null,
          input_tokens bigint not null,
          output_tokens bigint not null,
          at double precision not null,
          primary key (task, number)
        )
        """,
        """
        create table effect (
          task bigint not null,
          turn bigint not null,
          place bigint not null,
          tool text not null,
          arguments text not null,
          care text not null,
          key text not null,
          item text not null,
          status text not null,
          result text,
          reserved double precision not null,
          confirmed double precision,
          primary key (task, turn, place)
        )
        """,
        """
        create table evidence (
          seq {serial},
          task bigint not null,
          name text not null,
          by_whom text not null,
          content text not null,
          at double precision not null
        )
        """,
        "create index evidence_task on evidence (task)",
        """
        create table event (
          seq {serial},
          task bigint not null,
          type text not null,
          kind text not null,
          stop text not null,
          native text not null,
          text_only bigint not null,
          met bigint not null,
          open bigint,
          ending text not null,
          at double precision not null
        )
        """,
        "create index event_type on event (type)",
    ),
)


def migrate(database: Database, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring a store to the version of this evalkit, in one transaction; a new one gets all tables.

    StoreError for a store of a newer version, which is left as it is.
    """
    database.begin()
    try:
        database.lock_schema()
        database.execute("create table if not exists version (number bigint not null)")
        rows = database.execute("select number from version")
        version = int(rows[0][0]) if rows else 0
        if version > len(migrations):
            raise StoreError(
                f"{database.url}: the store has version {version}, this evalkit reads up to {len(migrations)}"
            )
        for statements in migrations[version:]:
            for statement in statements:
                database.execute(statement.replace("{serial}", database.serial))
        if not rows:
            database.execute("insert into version values (?)", (len(migrations),))
        elif version < len(migrations):
            database.execute("update version set number = ?", (len(migrations),))
        database.commit()
    except BaseException:
        database.rollback()
        raise
