import type { Database } from './database.ts';
import { requireProject } from './projects.ts';

export function setSwitch(
  database: Database,
  projectId: string,
  serverName: string,
  toolName: string | null,
  enabled: boolean,
): Promise<void> {
  return database.write(async (changes) => {
    await requireProject(changes, projectId);
    if (enabled) {
      await changes
        .deleteFrom('switches')
        .where('project_id', '=', projectId)
        .where('server_name', '=', serverName)
        .where('tool_name', 'is not distinct from', toolName)
        .execute();
    } else {
      await changes
        .insertInto('switches')
        .values({ project_id: projectId, server_name: serverName, tool_name: toolName })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    }
  });
}
