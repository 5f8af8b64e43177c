import { sql } from 'kysely';
import type { Database } from './database.ts';
import type { KnownOffer } from './types.ts';

/** Servers that are gone for longer are not expected back. */
const KEPT_DAYS = 30;

/** What servers offered when they were last seen. */
export class Offers {
  private readonly database: Database;

  constructor(database: Database) {
    this.database = database;
  }

  all(): Promise<KnownOffer[]> {
    return this.database.run((queries) =>
      queries
        .selectFrom('server_offers')
        .select(['project_id', 'server_name', 'fingerprint', 'offer'])
        .execute(),
    );
  }

  async keep(offer: KnownOffer): Promise<void> {
    await this.database.run((queries) =>
      queries
        .insertInto('server_offers')
        .values(offer)
        .onConflict((conflict) =>
          conflict.columns(['project_id', 'server_name']).doUpdateSet((row) => ({
            fingerprint: row.ref('excluded.fingerprint'),
            offer: row.ref('excluded.offer'),
            seen_at: sql<Date>`now()`,
          })),
        )
        .execute(),
    );
  }

  async see({ project_id, server_name }: Pick<KnownOffer, 'project_id' | 'server_name'>): Promise<void> {
    await this.database.run((queries) =>
      queries
        .updateTable('server_offers')
        .set({ seen_at: sql<Date>`now()` })
        .where('project_id', '=', project_id)
        .where('server_name', '=', server_name)
        .execute(),
    );
  }

  async deleteOld(): Promise<number> {
    const { numDeletedRows } = await this.database.run((queries) =>
      queries
        .deleteFrom('server_offers')
        .where('seen_at', '<', sql<Date>`now() - make_interval(days => ${KEPT_DAYS})`)
        .executeTakeFirstOrThrow(),
    );
    return Number(numDeletedRows);
  }
}
