// Compare page: keyboard.

import { backLink } from "./back.js";
import { keyboard } from "./keyboard.js";

keyboard({ links: ".compare th a", back: backLink() });
