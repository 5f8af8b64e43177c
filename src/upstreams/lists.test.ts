import { expect, it } from 'vitest';
import { listsOfNotification } from './lists.ts';

it('a notification named like an inherited property changes no list', () => {
  for (const method of ['constructor', 'toString', '__proto__'])
    expect(listsOfNotification.get(method)).toBe(undefined);
  expect(listsOfNotification.get('notifications/resources/list_changed')).toEqual(['resources', 'templates']);
});
