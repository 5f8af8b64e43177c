import type { ListName } from '../catalog/contribution.ts';

/** What clients are told when a list has changed. */
export const changedNotifications: Record<ListName, string> = {
  tools: 'notifications/tools/list_changed',
  resources: 'notifications/resources/list_changed',
  templates: 'notifications/resources/list_changed',
  prompts: 'notifications/prompts/list_changed',
};
