/* footprint.h - returns memory to the kernel that only startup needed. */
#pragma once

/* Called once after startup. Dropped pages that are needed again are read from the page cache. */
void footprint_trim(void);
